package host

import (
	"strings"

	"golang.org/x/sys/unix"
)

func passwdHome(uid uint32) string {
	b, err := ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	want := itoa(uid)
	for line := range strings.SplitSeq(string(b), "\n") {
		_, rest, _ := strings.Cut(line, ":")
		_, rest, _ = strings.Cut(rest, ":")
		if id, rest, _ := strings.Cut(rest, ":"); id == want {
			if p := strings.Split(rest, ":"); len(p) == 4 && strings.HasPrefix(p[2], "/") {
				return p[2]
			}
		}
	}
	return ""
}

func itoa(v uint32) string {
	var b [10]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + v%10)
		if v /= 10; v == 0 {
			return string(b[i:])
		}
	}
}

// HasFuse says whether /dev/fuse is the FUSE device (10:229, devices.txt) and can be opened.
func HasFuse() bool {
	var st unix.Stat_t
	return unix.Stat("/dev/fuse", &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(10, 229) &&
		unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) == nil
}

// landlockABI asks for the version (landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION).
func landlockABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}
