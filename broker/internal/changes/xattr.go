//go:build linux

package changes

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// acls are what a file's owner lets others do (acl(5)).
var acls = [...]string{"system.posix_acl_access", "system.posix_acl_default"}

// xattrs are what a user may set, overlayfs's own records left out.
func xattrs(fd int) map[string]string {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil || size == 0 {
		return nil
	}
	list := make([]byte, size)
	if size, err = unix.Flistxattr(fd, list); err != nil {
		return nil
	}
	out := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimRight(string(list[:size]), "\x00"), "\x00") {
		if !slices.Contains(acls[:], name) && (!strings.HasPrefix(name, "user.") ||
			strings.HasPrefix(name, "user.overlay.")) {
			continue
		}
		size, err := unix.Fgetxattr(fd, name, nil)
		if err != nil {
			continue
		}
		value := make([]byte, size)
		if size, err = unix.Fgetxattr(fd, name, value); err == nil {
			out[name] = string(value[:size])
		}
	}
	return out
}

// copyXattrs carries them over. What the host's file system does not take is left out.
func copyXattrs(dst, src int) {
	for name, value := range xattrs(src) {
		_ = unix.Fsetxattr(dst, name, []byte(value), 0)
	}
}

// dropACLs takes from a new file or directory what a default ACL of the directory around it has given it: the program
// has not seen that there.
func dropACLs(fd int) {
	for _, name := range acls {
		_ = unix.Fremovexattr(fd, name)
	}
}

// takenAway are the attributes that the host's file or directory has and the layer's has not. One that the layer's file
// system cannot have was not taken away.
func takenAway(upper, host int) (names []string) {
	for name := range xattrs(host) {
		if _, err := unix.Fgetxattr(upper, name, nil); err == unix.ENODATA {
			names = append(names, name)
		}
	}
	return names
}

// sameXattrs says whether apply would change none.
func sameXattrs(upper, host int) bool {
	had := xattrs(host)
	for name, value := range xattrs(upper) {
		if old, ok := had[name]; !ok || old != value {
			return false
		}
	}
	return len(takenAway(upper, host)) == 0
}

// copyXattrsOf is copyXattrs for a directory of the layer. What was taken away from one of the host's goes.
func (a *applier) copyXattrsOf(c *Change, dst int) {
	src, err := openBelow(a.upper, c.rel)
	if err != nil {
		return
	}
	defer unix.Close(src)
	copyXattrs(dst, src)
	if c.Op == Mode {
		for _, name := range takenAway(src, dst) {
			_ = unix.Fremovexattr(dst, name)
		}
	}
}
