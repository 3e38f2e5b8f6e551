//go:build linux

package names

import (
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// OpenBeneath opens a relative path below dir.
func OpenBeneath(dir int, rel string, flags int, mode uint32, more ...uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC | unix.O_NOCTTY), Resolve: beneath}
	for _, m := range more {
		how.Resolve |= m
	}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NOCTTY
	}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	return host.Openat2(dir, rel, &how)
}

// HoldBeneath opens a relative path below dir as an object, whatever its type, without following it.
func HoldBeneath(dir int, rel string) (int, error) {
	return OpenBeneath(dir, rel, unix.O_PATH|unix.O_NOFOLLOW, 0)
}

// maxExchanges bounds how often a link is found in the place of a directory, each a millisecond after the last.
const maxExchanges = 3000

// HoldPlainDirectory opens the directory at an absolute path as an object, without a link on the way. One that somebody
// exchanges with the directory, again and again, is waited out.
func HoldPlainDirectory(p string) (fd int, err error) {
	for range maxExchanges {
		if fd, err = host.OpenPlain(p, unix.O_PATH|unix.O_DIRECTORY); err != unix.ELOOP {
			break
		}
		time.Sleep(time.Millisecond) // who exchanges them may have to be let run
	}
	return fd, err
}

// Stat tells what has a name, without following it.
func Stat(dir int, name string, st *unix.Stat_t) error {
	return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
}

// Has says whether a directory has a name. It asks no server of a file system that is mounted there.
func Has(dir int, name string) bool {
	var st unix.Statx_t
	return unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, 0, &st) == nil
}

// Inspect tells an object's type and number, and where a link leads. It asks no server of a file system about them: one
// that does not answer must not hold up a listing of the directory in which it is mounted.
func Inspect(fd int) (typ uint32, ino uint64, target string, err error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_INO,
		&st); err != nil {
		return 0, 0, "", err
	}
	typ = uint32(st.Mode) & unix.S_IFMT
	if typ == unix.S_IFLNK {
		target, err = Readlink(fd, "")
	}
	return typ, st.Ino, target, err
}

// Readlink reads where a link leads, by its directory and name, or by a descriptor of its own.
func Readlink(dir int, name string) (string, error) {
	buf := make([]byte, 256)
	for {
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return "", err
		}
		if n < len(buf) {
			return string(buf[:n]), nil
		}
		buf = make([]byte, 2*len(buf))
	}
}

// MakeBeneath makes a directory below dir, and those on the way to it, where they are missing.
func MakeBeneath(dir int, rel string, mode uint32) error {
	for i := range len(rel) + 1 {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		parent, name := path.Split(rel[:i])
		fd, err := OpenBeneath(dir, "./"+parent, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		err = unix.Mkdirat(fd, name, mode)
		unix.Close(fd)
		if err != nil && err != unix.EEXIST {
			return err
		}
	}
	return nil
}

// ID is the identity of an open object.
func ID(fd int) (guard.ID, error) { return IDAt(fd, "") }

// IDAt is that of what has a name in a directory.
func IDAt(dir int, name string) (guard.ID, error) {
	st, err := host.StampOf(dir, name)
	return guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}, err
}

// IsFile says whether a name is a regular file's.
func IsFile(dir int, name string) bool {
	var st unix.Stat_t
	return Stat(dir, name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// BeingWritten says whether somebody has a file open for writing, as far as that can be told: only then is no lease for
// reading to be had.
func BeingWritten(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err == nil {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	}
	return err == unix.EAGAIN
}

// VisibleMode hides set-id bits, except the setgid of directories, which only passes the group on.
func VisibleMode(mode uint32) uint32 {
	if mode&unix.S_IFMT == unix.S_IFDIR {
		return mode &^ unix.S_ISUID
	}
	return mode &^ (unix.S_ISUID | unix.S_ISGID)
}
