//go:build linux

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

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func status(err error) fuse.Status   { return fuse.ToStatus(err) }
func errno(e unix.Errno) fuse.Status { return fuse.Status(e) }
