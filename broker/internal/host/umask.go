package host

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// Umask learns the process's umask without changing it, which would race with other threads.
func Umask() uint32 {
	fd, err := unix.Open("/proc/self/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	b := make([]byte, 512) // it is in the second line
	n, _ := unix.Read(fd, b)
	m, err := strconv.ParseUint(StatusField(string(b[:max(n, 0)]), "Umask"), 8, 32)
	if err != nil {
		return 0
	}
	return uint32(m)
}
