package names

import "golang.org/x/sys/unix"

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
	for {
		fd, err := unix.Openat2(dir, rel, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // EAGAIN: a rename on the host raced with the walk
			return fd, err
		}
	}
}

// HoldBeneath opens a relative path below dir as an object, whatever its type, without following it.
func HoldBeneath(dir int, rel string) (int, error) {
	return OpenBeneath(dir, rel, unix.O_PATH|unix.O_NOFOLLOW, 0)
}

// Stat tells what has a name, without following it.
func Stat(dir int, name string, st *unix.Stat_t) error {
	return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
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
