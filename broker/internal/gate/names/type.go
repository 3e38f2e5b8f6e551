//go:build linux

package names

import (
	"errors"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// Type is the type (S_IFMT) of what has a name in a directory; 0 if nothing has.
func Type(dir int, name string) uint32 {
	var st unix.Stat_t
	if dir < 0 || Stat(dir, name, &st) != nil {
		return 0
	}
	return st.Mode & unix.S_IFMT
}

// Is says whether a name in a directory is that of an object.
func Is(dir int, name string, id guard.ID) bool {
	var st unix.Stat_t
	return dir >= 0 && Stat(dir, name, &st) == nil && st.Dev == id.Dev && st.Ino == id.Ino
}

// DropSetID takes the bits off a file that is behind a descriptor, and has a name in proc, by which it would run as
// somebody else.
func DropSetID(proc, fd int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0 {
		return err
	}
	return unix.Fchmodat(proc, name, st.Mode&0o1777, 0)
}

// Outrun says whether an error is about a name to which something else has happened meanwhile, or about a session that
// is over.
func Outrun(err error) bool {
	for _, e := range [...]unix.Errno{unix.ENOENT, unix.EEXIST, unix.ENOTDIR, unix.EISDIR, unix.ENOTEMPTY, unix.ESTALE,
		unix.EBUSY, unix.EINVAL, unix.ELOOP, unix.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
