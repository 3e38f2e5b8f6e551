//go:build linux

package netns

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Network is a network namespace that was made before its sandbox. It belongs to a user namespace of its own, above the
// sandbox's: no capability that a program can have inside reaches it, so its rules are the caller's alone.
type Network struct {
	Net, User *os.File
}

// Socket is one socket to be made in a network namespace. Binding to a low port and every protocol are possible there.
type Socket struct {
	Family, Type, Proto int
	Options             [][3]int       // level, name, value
	Bind                netip.AddrPort // the zero value: not bound
	Backlog             int            // above 0: it listens
}

// maxSockets is how many descriptors one message carries (SCM_MAX_FD is 253).
const maxSockets = 200

// New makes a network namespace with its loopback up and the sockets in it. uid and gid are the caller's own; they are
// the only ids of its user namespace, and 0 there, unless maps is set, which writes its maps. Ports below 1024 take a
// privilege there unless publishes is set: a way out may carry them to servers that take them for root's word.
func New(uid, gid uint32, sockets []Socket, maps func(pid int) error, publishes bool) (*Network, []*os.File, error) {
	id := plan.Identity{OutsideUID: uid, OutsideGID: gid}
	files, err := inChild(unix.CLONE_NEWUSER|unix.CLONE_NEWNET, sockets, maps, func(t *tape.Tape) {
		Identity(t, id, false, maps != nil)
		stage.BringUp(t)
		// Ping sockets for the one group that there is, and no waiting for neighbours that do not exist; where a kernel
		// lacks a file nothing is lost.
		settings := [][2]string{{"/proc/sys/net/ipv4/ping_group_range", "0 0"},
			{"/proc/sys/net/ipv6/conf/default/accept_dad", "0"},
			{"/proc/sys/net/ipv6/conf/default/router_solicitation_delay", "0"}}
		if publishes {
			settings = append(settings, [2]string{"/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"})
		}
		for _, f := range settings {
			t.At("writing", f[0])
			t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(f[0]), unix.O_WRONLY|unix.O_CLOEXEC,
				0).To(tape.RegA).May(tape.AnyErrno).ElseSkip(2)
			t.Call(unix.SYS_WRITE, 0, t.Str(f[1]), uintptr(len(f[1]))).From(0, tape.RegA).May(tape.AnyErrno)
			t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	n := &Network{Net: files[0]}
	user, err := unix.IoctlRetInt(int(n.Net.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		closeFiles(files)
		return nil, nil, fmt.Errorf("opening the user namespace of a network: %w", err)
	}
	unix.CloseOnExec(user)
	n.User = os.NewFile(uintptr(user), "userns")
	return n, files[1:], nil
}

// Sockets makes more sockets in the namespace.
func (n *Network) Sockets(sockets []Socket) ([]*os.File, error) {
	moved, undo, err := stage.MoveAway([]int{int(n.User.Fd()), int(n.Net.Fd())})
	defer undo()
	if err != nil {
		return nil, err
	}
	files, err := inChild(0, sockets, nil, func(t *tape.Tape) {
		t.At("entering the network's user namespace", "")
		t.Call(unix.SYS_SETNS, uintptr(moved[0]), unix.CLONE_NEWUSER)
		t.At("entering the network namespace", "")
		t.Call(unix.SYS_SETNS, uintptr(moved[1]), unix.CLONE_NEWNET)
	})
	if err != nil {
		return nil, err
	}
	files[0].Close()
	return files[1:], nil
}

// Close gives the namespace up; it lives on as long as something is in it.
func (n *Network) Close() {
	n.Net.Close()
	n.User.Close()
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// inChild carries out what first compiles and makes the sockets, in a child that then ends. The first file is the
// child's network namespace.
func inChild(flags uintptr, sockets []Socket, maps func(pid int) error, first func(*tape.Tape)) ([]*os.File, error) {
	if len(sockets) > maxSockets {
		return nil, fmt.Errorf("making %d sockets at once, at most %d", len(sockets), maxSockets)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making control socket: %w", err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	moved, undo, err := stage.MoveAway(pair[1:])
	defer undo()
	if err != nil {
		return nil, err
	}
	m, t, unmap, err := newOne()
	if err != nil {
		return nil, err
	}
	defer unmap()
	t.At("moving descriptors", "")
	t.Call(unix.SYS_DUP3, uintptr(moved[0]), stage.FdSock, unix.O_CLOEXEC)
	first(t)
	rights := unix.UnixRights(make([]int, 1+len(sockets))...)
	addr := t.Bytes(rights)
	t.At("opening", "/proc/thread-self/ns/net")
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/proc/thread-self/ns/net"), unix.O_RDONLY|unix.O_CLOEXEC, 0).To(tape.RegA)
	t.Poke(addr+uintptr(unix.CmsgLen(0)), tape.RegA)
	for i := range sockets {
		sockets[i].Compile(t)
		t.Poke(addr+uintptr(unix.CmsgLen(0)+4*(i+1)), tape.RegA)
	}
	t.At("handing over sockets", "")
	steps.Send(t, stage.FdSock, stage.Encoded(stage.Message{Kind: stage.EvReady}), addr, len(rights))
	pid, err := m.start(flags, t)
	if err != nil {
		return nil, err
	}
	if maps != nil {
		if err := giveMaps(pair[0], pid, maps); err != nil {
			_ = unix.Kill(pid, unix.SIGKILL)
			AwaitEnd(pid)
			return nil, err
		}
	}
	AwaitEnd(pid)
	if f := m.fault; f.Errno != 0 {
		return nil, steps.FaultAt(t, f)
	}
	return received(pair[0], 1+len(sockets))
}

// received takes the descriptors that lie in the socket.
func received(sock, want int) ([]*os.File, error) {
	var buf [64]byte
	oob := make([]byte, unix.CmsgSpace(4*want))
	_, on, _, _, err := unix.Recvmsg(sock, buf[:], oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, fmt.Errorf("receiving sockets: %w", err)
	}
	scm, err := unix.ParseSocketControlMessage(oob[:on])
	if err != nil || len(scm) != 1 {
		return nil, fmt.Errorf("receiving sockets: %w", errNothing)
	}
	fds, err := unix.ParseUnixRights(&scm[0])
	if err != nil {
		return nil, fmt.Errorf("receiving sockets: %w", err)
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "socket")
	}
	if len(files) != want {
		closeFiles(files)
		return nil, fmt.Errorf("received %d descriptors, want %d", len(files), want)
	}
	return files, nil
}

// Compile makes the socket and leaves its descriptor in RegA.
func (s *Socket) Compile(t *tape.Tape) {
	t.At("making a socket", s.text())
	t.Call(unix.SYS_SOCKET, uintptr(s.Family), uintptr(s.Type|unix.SOCK_CLOEXEC), uintptr(s.Proto)).To(tape.RegA)
	for _, o := range s.Options {
		v := &[2]int32{int32(o[2])}
		t.Call(unix.SYS_SETSOCKOPT, 0, uintptr(o[0]), uintptr(o[1]), tape.Ptr(t, v), 4).From(0, tape.RegA)
	}
	if s.Bind.IsValid() {
		b := sockaddr(s.Bind)
		t.Call(unix.SYS_BIND, 0, t.Bytes(b), uintptr(len(b))).From(0, tape.RegA)
	}
	if s.Backlog > 0 {
		t.Call(unix.SYS_LISTEN, 0, uintptr(s.Backlog)).From(0, tape.RegA)
	}
}

func (s *Socket) text() string {
	if s.Bind.IsValid() {
		return s.Bind.String()
	}
	return fmt.Sprintf("family %d type %d protocol %d", s.Family, s.Type, s.Proto)
}

// sockaddr is a as struct sockaddr_in or sockaddr_in6 (ip(7), ipv6(7)).
func sockaddr(a netip.AddrPort) []byte {
	ip := a.Addr().AsSlice()
	b := make([]byte, 16)
	family, at := uint16(unix.AF_INET), 4
	if a.Addr().Is6() {
		b = make([]byte, 28)
		family, at = unix.AF_INET6, 8
	}
	binary.NativeEndian.PutUint16(b, family)
	binary.BigEndian.PutUint16(b[2:], a.Port())
	copy(b[at:], ip)
	return b
}
