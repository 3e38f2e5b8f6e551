//go:build linux

package names

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// maxChecked bounds what is read to be checked, in bytes; a git configuration has a few hundred, an index much more.
func maxChecked(what guard.Action) int64 {
	if what == guard.Index {
		return guard.MaxIndex
	}
	return 1 << 20
}

// Refused is what a check has against the contents that were to be put in place.
type Refused struct{ Err error }

func (r Refused) Error() string { return r.Err.Error() }

// Unwrap is the check's own error.
func (r Refused) Unwrap() error { return r.Err }

// Replace carries out a rename to a name whose contents are checked because of an action, of a regular file of these
// permissions that has not the name of a secret. The session may still hold the old file open for writing, so what is
// put in place is a new file with exactly the bytes that were checked, and the time of the old one: by the time of its
// index git tells which files may have changed while it was written. What the name has now is nil for the check if
// nothing has it.
func Replace(from, to Name, what guard.Action, mode uint32, flags uint, check func(old, next []byte) error) error {
	if from.Row != nil { // by now it may be a secret of the host's, and it would be read
		return unix.EACCES
	}
	most := maxChecked(what)
	next, written, err := readChecked(from, most)
	if err != nil {
		return err
	}
	old, _, err := readChecked(to, most)
	if err != nil && err != unix.ENOENT {
		return err
	}
	if err := check(old, next); err != nil {
		return Refused{err}
	}
	var now unix.Stat_t // of none others may write
	_ = unix.Fstatat(to.Dir, to.Base, &now, unix.AT_SYMLINK_NOFOLLOW)
	if err := install(to.Dir, to.Base, next, guard.ConfigMode(now.Mode, mode), flags, &written); err != nil {
		return err
	}
	return unix.Unlinkat(from.Dir, from.Base, 0)
}

func readChecked(n Name, most int64) (text []byte, written unix.Timespec, err error) {
	fd, err := open(n.Dir, n.Base, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0, beneath|unix.RESOLVE_NO_XDEV)
	if err != nil {
		return nil, written, err
	}
	f := os.NewFile(uintptr(fd), n.Base)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, written, unix.EACCES
	}
	b := bytes.NewBuffer(make([]byte, 0, min(st.Size, most)+bytes.MinRead))
	if _, err = b.ReadFrom(io.LimitReader(f, most+1)); err == nil && int64(b.Len()) > most {
		err = unix.EFBIG
	}
	return b.Bytes(), st.Mtim, errnoOf(err)
}

// Install puts a file in place that nobody but this process has ever had open: it had no name to be opened by before.
func Install(dir int, base string, data []byte, mode uint32, flags uint) error {
	return install(dir, base, data, mode, flags, nil)
}

// install is Install of a file that was written at that time, unless that is nil.
func install(dir int, base string, data []byte, mode uint32, flags uint, written *unix.Timespec) error {
	tmp := aside()
	fd, err := open(dir, tmp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0, beneath)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), tmp)
	_, err = f.Write(data)
	if written != nil {
		times := [...]unix.Timespec{{Nsec: unix.UTIME_NOW}, *written}
		err = errors.Join(err, unix.UtimesNanoAt(fd, "", times[:], unix.AT_EMPTY_PATH))
	}
	err = errors.Join(err, f.Chmod(os.FileMode(mode)), f.Close())
	if err == nil {
		err = unix.Renameat2(dir, tmp, dir, base, flags)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, tmp, 0) // the first failure is the one to report
	}
	return errnoOf(err)
}

// errnoOf is the kernel's number in an error.
func errnoOf(err error) error {
	var e syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	}
	return unix.EIO
}
