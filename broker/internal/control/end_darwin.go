package control

import (
	"time"

	"golang.org/x/sys/unix"
)

// End kills a process.
func End(pid int, _ []int, _ time.Duration) (left []int, err error) {
	return nil, unix.Kill(pid, unix.SIGKILL)
}
