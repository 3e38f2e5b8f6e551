//go:build linux

package changes

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// acls are what a file's owner lets others do (acl(5)).
var acls = [...]string{"system.posix_acl_access", "system.posix_acl_default"}

// copyXattrs carries over what a user may set, overlayfs's own records left out. What the host's file system does not
// take is left out as well.
func copyXattrs(dst, src int) {
	size, err := unix.Flistxattr(src, nil)
	if err != nil || size == 0 {
		return
	}
	list := make([]byte, size)
	if size, err = unix.Flistxattr(src, list); err != nil {
		return
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list[:size]), "\x00"), "\x00") {
		if !slices.Contains(acls[:], name) && (!strings.HasPrefix(name, "user.") ||
			strings.HasPrefix(name, "user.overlay.")) {
			continue
		}
		size, err := unix.Fgetxattr(src, name, nil)
		if err != nil {
			continue
		}
		value := make([]byte, size)
		if size, err = unix.Fgetxattr(src, name, value); err == nil {
			_ = unix.Fsetxattr(dst, name, value[:size], 0)
		}
	}
}

// copyXattrsOf is copyXattrs for a directory of the layer.
func (a *applier) copyXattrsOf(rel string, dst int) {
	if src, err := openBelow(a.upper, rel); err == nil {
		copyXattrs(dst, src)
		unix.Close(src)
	}
}
