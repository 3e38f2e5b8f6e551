package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// Stamp is which file something is, and when it was last changed in any way: another file of the same name, or other
// contents, have another (statx(2)). Times are in nanoseconds; Born is 0 on a file system that keeps no time of birth.
type Stamp struct {
	Type          Type
	Dev, Ino      uint64
	Born, Changed int64
	Size          int64
}

// Stamp looks at p itself.
func (FS) Stamp(p string) (Stamp, error) { return StampOf(unix.AT_FDCWD, p) }

// Peek reads at most n bytes of the regular file p, not through a link. It never waits for anybody.
func (FS) Peek(p string, off int64, n int) ([]byte, error) {
	return peek(unix.AT_FDCWD, p, off, n)
}

func peek(dir int, p string, off int64, n int) ([]byte, error) {
	fd, err := unix.Openat(dir, p, peeked, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	defer unix.Close(fd)
	return PeekAt(fd, off, n)
}

const peeked = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// PeekPlain reads the beginning of the file p, in whose whole path there is no link, and tells which file it is.
func PeekPlain(p string, n int) (st Stamp, text []byte, err error) {
	fd, err := OpenPlain(p, peeked)
	if err != nil {
		return st, nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	defer unix.Close(fd)
	if st, err = StampOf(fd, ""); err == nil {
		text, err = PeekAt(fd, 0, n)
	}
	return st, text, err
}

// PeekAt is Peek of an open file.
func PeekAt(fd int, off int64, n int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, unix.EINVAL
	}
	b := make([]byte, max(0, min(int64(n), st.Size-off)))
	have := 0
	for have < len(b) {
		k, err := unix.Pread(fd, b[have:], off+int64(have))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if k == 0 {
			break
		}
		have += k
	}
	return b[:have], nil
}
