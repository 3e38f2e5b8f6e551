//go:build linux

package names

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// PlaceNow is the place of a directory that is open, where it is by now below another one that is open and has the
// place at. It ends at packages. Proc is /proc/self/fd: the kernel knows where what is open is, whoever has moved it.
func PlaceNow(proc, fd, top int, at *guard.Place) *guard.Place {
	now, err := Readlink(proc, strconv.Itoa(fd))
	above, no := Readlink(proc, strconv.Itoa(top))
	rel, in := strings.CutPrefix(now, above+"/")
	if err != nil || no != nil || !in {
		return at
	}
	for name := range strings.SplitSeq(rel, "/") {
		if at = at.Below(name); at.Packed() {
			break
		}
	}
	return at
}

// Invalid is the kernel's error for a name that is not valid (guard.ValidName).
func Invalid(name string) unix.Errno {
	if len(name) > guard.MaxName {
		return unix.ENAMETOOLONG
	}
	return unix.EINVAL
}
