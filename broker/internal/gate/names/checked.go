package names

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/guard"
)

// maxChecked bounds what is read to be checked, in bytes; a git configuration has a few hundred.
const maxChecked = 1 << 20

// Refused is what a check has against the contents that were to be put in place.
type Refused struct{ Err error }

func (r Refused) Error() string { return r.Err.Error() }

// Unwrap is the check's own error.
func (r Refused) Unwrap() error { return r.Err }

// Replace carries out a rename to a name whose contents are checked, of a regular file of these permissions. The
// session may still hold the old file open for writing, so what is put in place is a new file with exactly the bytes
// that were checked. What the name has now is nil for the check if nothing has it.
func Replace(from, to Name, mode uint32, flags uint, check func(old, next []byte) error) error {
	next, err := readChecked(from)
	if err != nil {
		return err
	}
	old, err := readChecked(to)
	if err != nil && err != unix.ENOENT {
		return err
	}
	if err := check(old, next); err != nil {
		return Refused{err}
	}
	var now unix.Stat_t // of none others may write
	_ = unix.Fstatat(to.Dir, to.Base, &now, unix.AT_SYMLINK_NOFOLLOW)
	if err := Install(to.Dir, to.Base, next, guard.ConfigMode(now.Mode, mode), flags); err != nil {
		return err
	}
	return unix.Unlinkat(from.Dir, from.Base, 0)
}

func readChecked(n Name) ([]byte, error) {
	fd, err := open(n.Dir, n.Base, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0, beneath|unix.RESOLVE_NO_XDEV)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), n.Base)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, unix.EACCES
	}
	b, err := io.ReadAll(io.LimitReader(f, maxChecked+1))
	if err == nil && len(b) > maxChecked {
		return nil, unix.EFBIG
	}
	return b, errnoOf(err)
}

// Install puts a file in place that nobody but this process has ever had open: it had no name to be opened by before.
func Install(dir int, base string, data []byte, mode uint32, flags uint) error {
	tmp := aside()
	fd, err := open(dir, tmp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0, beneath)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), tmp)
	_, err = f.Write(data)
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
