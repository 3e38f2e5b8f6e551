//go:build linux

package relay

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Upstream is a socket of the host's to which a door leads. It is the object that was found when the door was granted:
// connections are made by its descriptor, since its name may come to mean another one.
type Upstream struct{ file *os.File }

var errGone = errors.New("the socket that the session began with is served no more: start the session again")

// Hold opens the socket at a path in which there is no link.
func Hold(socket string) (*Upstream, error) {
	fd, err := unix.Open(socket, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "opening", Path: socket, Err: err}
	}
	u := &Upstream{os.NewFile(uintptr(fd), socket)}
	var st unix.Stat_t
	is, err := os.Readlink(named(fd))
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		err = unix.ENOTSOCK
	case is != socket: // it was exchanged since it was looked at
		err = fmt.Errorf("it leads to %q now", is)
	default:
		return u, nil
	}
	u.file.Close()
	return nil, &os.PathError{Op: "opening", Path: socket, Err: err}
}

// named is a name of a descriptor, which a socket's address has room for.
func named(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Connect opens a connection to it.
func (u *Upstream) Connect() (c *net.UnixConn, err error) {
	raw, err := u.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	cerr := raw.Control(func(fd uintptr) {
		c, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: named(int(fd)), Net: "unix"})
	})
	if errors.Is(err, unix.ECONNREFUSED) {
		err = errGone
	}
	return c, cmp.Or(cerr, err)
}
