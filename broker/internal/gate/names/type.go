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
