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
	rel, in := Beneath(proc, fd, top)
	if !in {
		return at
	}
	for name := range strings.SplitSeq(rel, "/") {
		if at = at.Below(name); at.Packed() {
			break
		}
	}
	return at
}

// Stays says whether a directory that is open is still where it was found, at rel below another one that is open and
// has the place at, and is among packages if the place that it had was.
func Stays(proc, fd, top int, rel string, at, had *guard.Place) bool {
	now, in := Beneath(proc, fd, top)
	return in && guard.Fold("/"+now) == guard.Fold(rel) && PlaceNow(proc, fd, top, at).Packed() == had.Packed()
}

// Beneath is the way to what is open from a directory that is open, by now, or the last one that it had.
func Beneath(proc, fd, top int) (rel string, in bool) {
	now, err := Readlink(proc, strconv.Itoa(fd))
	above, no := Readlink(proc, strconv.Itoa(top))
	var st unix.Stat_t
	if err != nil || no != nil || unix.Fstat(fd, &st) != nil {
		return "", false
	}
	if st.Nlink == 0 {
		now = strings.TrimSuffix(now, " (deleted)")
	}
	if rel, in = strings.CutPrefix(now, strings.TrimSuffix(above, "/")+"/"); !in {
		return "", false
	}
	return rel, true
}

// Invalid is the kernel's error for a name that is not valid (guard.ValidName).
func Invalid(name string) unix.Errno {
	if len(name) > guard.MaxName {
		return unix.ENAMETOOLONG
	}
	return unix.EINVAL
}
