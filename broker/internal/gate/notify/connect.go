//go:build linux

package notify

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
)

// maxAddress is sizeof(struct sockaddr_storage).
const maxAddress = 128

// inFlight are the sockets that the broker is connecting for somebody.
type inFlight struct {
	mu    sync.Mutex
	fds   map[int]bool
	ended bool
}

func (f *inFlight) add(fd int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	if f.fds == nil {
		f.fds = map[int]bool{}
	}
	f.fds[fd] = true
	return true
}

// drop closes fd, under the lock so that end never touches a number that has become something else.
func (f *inFlight) drop(fd int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.fds, fd)
	unix.Close(fd)
}

// end wakes whoever still waits for a peer.
func (f *inFlight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for fd := range f.fds {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	}
}

// address serves connect(2), bind(2) and the i386 door to both. The address is copied here, once.
func (s *server) address(n *notif, c *call) {
	k, args := c.kind, [3]uint64{n.args[0], n.args[1], n.args[2]}
	if k == kindSocketcall {
		var b [12]byte
		if got, e := readMemory(n.pid, n.args[1], b[:]); e != 0 || got != len(b) {
			s.fail(n.id, unix.EFAULT)
			return
		}
		for i := range args {
			args[i] = uint64(binary.LittleEndian.Uint32(b[4*i:]))
		}
		switch n.args[0] {
		case 2:
			k = kindBind
		case 3:
			k = kindConnect
		default:
			s.refuse(n, "connect", "", unix.EPERM, "the call is refused by policy")
			return
		}
	}
	size := int32(uint32(args[2]))
	if size < 0 || size > maxAddress {
		s.fail(n.id, unix.EINVAL)
		return
	}
	addr := make([]byte, size)
	if got, e := readMemory(n.pid, args[1], addr); e == unix.EFAULT || e == 0 && got != len(addr) {
		s.fail(n.id, unix.EFAULT)
		return
	} else if e != 0 {
		s.refuse(n, "connect", "", unix.EACCES, "the caller's memory cannot be read")
		return
	}
	if k == kindBind {
		s.bind(n, c, addr)
		return
	}
	x := &connection{s: s, n: *n, fd: int32(uint32(args[0])), addr: addr}
	// Not in s.work: a connect to a host whose packets are dropped outlives the sandbox by minutes.
	select {
	case s.connects <- struct{}{}:
		s.late.Go(func() {
			defer func() { <-s.connects }()
			x.serve()
		})
	default:
		s.refuse(n, "connect", "", unix.EACCES, "too many connects are under way")
	}
}

// bind passes: a socket file can only be made where the sandbox may write. A place that is not mounted is asked for.
func (s *server) bind(n *notif, c *call, addr []byte) {
	p, ok := socketPath(addr)
	if !ok || s.rootFor(n) == nil {
		s.pass(n.id)
		return
	}
	bound := call{name: c.name, op: "bind", kind: kindMake, dir: none, path: none, flags: none, follow: never, out: none,
		dir2: none, path2: none}
	s.slow(n, &bound, 0, []name{{dir: unix.AT_FDCWD, path: append([]byte(p), 0), nofollow: true}}, true)
}

// socketPath returns the path of a unix address that has one.
func socketPath(addr []byte) (string, bool) {
	if len(addr) < 3 || binary.NativeEndian.Uint16(addr) != unix.AF_UNIX || addr[2] == 0 {
		return "", false
	}
	p := addr[2:]
	if i := bytes.IndexByte(p, 0); i >= 0 {
		p = p[:i]
	}
	return string(p), true
}

// connection is one connect(2), carried out on a duplicate of the caller's socket: neither another address nor another
// socket can be slipped in after the look.
type connection struct {
	s    *server
	n    notif
	fd   int32
	addr []byte
}

func (x *connection) serve() {
	s := x.s
	sock, e := x.duplicate()
	if e != 0 {
		s.fail(x.n.id, e)
		return
	}
	if !s.sockets.add(sock) {
		unix.Close(sock)
		s.fail(x.n.id, unix.EACCES)
		return
	}
	defer s.sockets.drop(sock)
	domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		s.fail(x.n.id, unix.ENOTSOCK)
		return
	}
	switch domain {
	case unix.AF_INET, unix.AF_INET6:
		x.finish(sock, x.addr)
	case unix.AF_UNIX:
		x.unix(sock)
	case unix.AF_NETLINK:
		// The broker owns the network namespace and could join groups that the caller may not.
		if len(x.addr) < 12 || !allZero(x.addr[4:12]) {
			s.refuse(&x.n, "connect", "", unix.EPERM, "netlink sockets may only be connected to the kernel")
			return
		}
		x.finish(sock, x.addr)
	default:
		s.refuse(&x.n, "connect", "", unix.EACCES, "sockets of family "+strconv.Itoa(domain)+" are not connected")
	}
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// duplicate takes the caller's socket. The thread's own table is meant, which need not be its process's (6.9).
func (x *connection) duplicate() (int, syscall.Errno) {
	pidfd, err := unix.PidfdOpen(int(x.n.pid), unix.O_EXCL) // PIDFD_THREAD
	if err == unix.EINVAL {
		pidfd, err = unix.PidfdOpen(groupOf(x.n.pid), 0)
	}
	if err != nil {
		return -1, unix.EACCES
	}
	defer unix.Close(pidfd)
	if !idValid(x.s.fd, x.n.id) {
		return -1, unix.EACCES
	}
	sock, err := unix.PidfdGetfd(pidfd, int(x.fd), 0)
	if err == unix.EBADF {
		return -1, unix.EBADF
	}
	if err != nil {
		return -1, unix.EACCES
	}
	return sock, 0
}

func groupOf(tid uint32) int {
	b, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(tid), 10) + "/status")
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(host.StatusField(string(b), "Tgid"))
	if err != nil {
		return -1
	}
	return n
}

// finish connects. The file description is the caller's, so O_NONBLOCK and SO_SNDTIMEO mean what they always do.
func (x *connection) finish(sock int, addr []byte) bool {
	if !idValid(x.s.fd, x.n.id) { // what was decided about the pid was decided about the caller
		return false
	}
	var e syscall.Errno
	rights{x.s.caps}.without(func() {
		for {
			if e = connectTo(sock, addr); e != unix.EINTR { // this process's signals are not the caller's
				return
			}
		}
	})
	if e != 0 {
		x.s.fail(x.n.id, e)
		return false
	}
	x.s.value(x.n.id, 0)
	return true
}
