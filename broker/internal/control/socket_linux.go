package control

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// closeRights has descriptors that come along closed where a program is started.
const closeRights = unix.MSG_CMSG_CLOEXEC

func streamSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

// privateSocket has the socket's name be the user's alone. The mode of the descriptor becomes that of the name: 0600
// from its first moment.
func privateSocket(fd int) error { return unix.Fchmod(fd, 0o600) }

func accept(l int) (int, error) {
	fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	return fd, err
}

// sockName names the socket through the descriptor of its folder: the folder that was checked is the one
// that is used, and the 108 bytes of a socket address are enough however long the path is.
func sockName(dir int, _ string) string { return fmt.Sprintf("/proc/self/fd/%d/sock", dir) }
