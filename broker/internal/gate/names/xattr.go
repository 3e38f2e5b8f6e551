//go:build linux

package names

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

// UserXattr says whether an extended attribute means something to programs alone. The others mean something to the
// host's kernel.
func UserXattr(name string) bool {
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

// UserXattrs are the names of a file's attributes of that kind, each with a NUL behind it (listxattr(2)).
func UserXattrs(path string) (list []byte, err error) {
	buf := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Listxattr(path, buf)
	if err != nil {
		return nil, err
	}
	for name := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if UserXattr(string(name)) {
			list = append(append(list, name...), 0)
		}
	}
	return list, nil
}
