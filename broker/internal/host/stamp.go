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

// StampOf looks at the file behind a descriptor, or at name in the directory that it is.
func StampOf(fd int, name string) (Stamp, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var st unix.Statx_t
	if err := unix.Statx(fd, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return Stamp{}, &os.PathError{Op: "statx", Path: name, Err: err}
	}
	s := Stamp{Type: typeOf(uint32(st.Mode)), Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino,
		Size:    int64(st.Size),
		Changed: st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec)}
	if st.Mask&unix.STATX_BTIME != 0 {
		s.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return s, nil
}

// Stamp looks at p itself.
func (FS) Stamp(p string) (Stamp, error) { return StampOf(unix.AT_FDCWD, p) }

// Peek reads at most n bytes of the regular file p, not through a link. It never waits for anybody.
func (FS) Peek(p string, off int64, n int) ([]byte, error) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	defer unix.Close(fd)
	return PeekAt(fd, off, n)
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

// Stamp is FS.Stamp: what is judged is looked at when it is.
func (c *Cache) Stamp(p string) (Stamp, error) { return c.fs.Stamp(p) }

// Peek is FS.Peek.
func (c *Cache) Peek(p string, off int64, n int) ([]byte, error) { return c.fs.Peek(p, off, n) }
