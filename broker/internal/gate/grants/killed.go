//go:build linux

package grants

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killed reports whether a thread is gone or has a SIGKILL pending. That it cannot be looked at (EMFILE) says nothing.
func killed(pid uint32) bool {
	b, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/status")
	return gone(err) || err == nil && killPending(string(b))
}

func gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

func killPending(status string) bool {
	const bit = 1 << (unix.SIGKILL - 1)
	for line := range strings.SplitSeq(status, "\n") {
		v, ok := strings.CutPrefix(line, "SigPnd:")
		if !ok {
			v, ok = strings.CutPrefix(line, "ShdPnd:")
		}
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(v), 16, 64)
		if err == nil && set&bit != 0 {
			return true
		}
	}
	return false
}
