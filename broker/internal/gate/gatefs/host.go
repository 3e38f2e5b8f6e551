package gatefs

import (
	"strconv"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
)

// reopen opens the object behind an O_PATH descriptor; the object is fixed, so no name can be swapped meanwhile.
func (s *Server) reopen(fd, flags int) (int, error) {
	for {
		n, err := unix.Openat(s.procfd, strconv.Itoa(fd), flags&^unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func procPath(fd int) string {
	return "/proc/self/fd/" + strconv.Itoa(fd)
}

// openFileBudget is how many O_PATH descriptors may be held for the kernel's cache before some are asked back.
func openFileBudget() int { return openFileLimit() / 2 }

func openFileLimit() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(l.Cur, 200_000))
}

func status(err error) fuse.Status { return fuse.ToStatus(err) }

func errno(e unix.Errno) fuse.Status { return fuse.Status(e) }
