//go:build linux

package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/helperclient"
	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/shared/rtnl"
	"sbx.example/sbx/shared/wire"
)

// veth is a device that sbx-helper has made: it carries packets in the kernel, with no process in between. The
// helper waits beside it and holds the host's rules for it; both go when the socket to it is closed.
type veth struct {
	sock  int
	proc  *os.Process
	in    *rtnl.Conn // inside
	index int        // of the device, there
	f     *os.File
	gone  chan struct{}
}

// vethPatience bounds the wait for the helper, for whom a busy host may have to load the kernel's modules first.
const vethPatience = time.Minute

// startVeth has the helper connect the namespace, and sets the sandbox's end up with the caller's own rights.
func (n *Network) startVeth() (*veth, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making the helper's socket: %w", err)
	}
	v := &veth{sock: pair[0], gone: make(chan struct{})}
	theirs := os.NewFile(uintptr(pair[1]), "wire")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		var helper program.Program
		if helper, err = program.Roots(n.o.Helper); err == nil {
			v.proc, err = helper.Start([]string{"net"}, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{theirs, null,
				null}})
		}
		null.Close()
	}
	theirs.Close()
	if err != nil {
		unix.Close(pair[0])
		return nil, fmt.Errorf("starting %s: %w", n.o.Helper, err)
	}
	addr, err := v.ask(int(n.ns.Net.Fd()))
	if err == nil {
		err = v.setUp(n, addr)
	}
	if err != nil {
		v.end()
		return nil, err
	}
	return v, nil
}

// carryVeth has the helper's device carry IPv4 and pasta, where the host has a way out by it, IPv6: for that the helper
// would have to make a router of the whole host, and could not hold the sandbox to its address once it was killed
// itself (helper/README.md, "net").
func (n *Network) carryVeth() error {
	six := make(chan error, 1)
	go func() { six <- n.carryIPv6() }()
	v, err := n.startVeth()
	if no := <-six; no != nil && err == nil {
		n.lost("IPv6 is not to be had: " + no.Error())
	}
	if err != nil {
		return fmt.Errorf("making the sandbox's network device: %w", err)
	}
	n.veth = v
	go v.watch(n)
	return nil
}

// ErrNoIPv6 says that the host itself has no way out by IPv6.
var ErrNoIPv6 = errors.New("this host has no way out by it")

// IPv6BesideVeth finds the program that carries IPv6 beside --net veth.
func IPv6BesideVeth(from program.Source) (program.Program, error) {
	if !routesIPv6() {
		return program.Program{}, ErrNoIPv6
	}
	if err := unix.Access("/dev/net/tun", unix.R_OK|unix.W_OK); err != nil {
		return program.Program{}, fmt.Errorf("opening /dev/net/tun: %w", err)
	}
	return from.Find("pasta")
}

func (n *Network) carryIPv6() error {
	pasta, err := IPv6BesideVeth(n.o.Programs)
	if errors.Is(err, ErrNoIPv6) {
		return nil
	}
	if err != nil {
		return err
	}
	probe, err := n.ns.Sockets([]netns.Socket{{Family: unix.AF_INET6, Type: unix.SOCK_DGRAM}})
	if err != nil {
		return err
	}
	n.keep(probe[0])
	c := &carrier{name: "pasta", file: pasta, args: append(pastaArgs("/proc/self/fd/4", "/proc/self/fd/3"), "-I", device6,
		"-a", ownV6, "-g", gateway6, "--ipv6-only"), ns: n.ns, say: n.lost}
	c.up = func() bool {
		return unix.Connect(int(probe[0].Fd()), &unix.SockaddrInet6{Port: 9,
			Addr: netip.MustParseAddr("2001:db8::1").As16()}) == nil
	}
	if err := c.start(); err != nil {
		return err
	}
	n.car = c
	return nil
}

// ask sends the request and returns the address that the sandbox is given.
func (v *veth) ask(netns int) (netip.Addr, error) {
	_ = helperclient.Send(v.sock, []byte(wire.NetRequest), []int{netns}) // what becomes of it comes back
	r, err := helperclient.Await(v.sock, wire.Connected, vethPatience)
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(r.A)))), nil
}

// setUp gives the device inside its address and the route out.
func (v *veth) setUp(n *Network, addr netip.Addr) error {
	files, err := n.ns.Sockets([]netns.Socket{{Family: unix.AF_NETLINK, Type: unix.SOCK_RAW, Proto: unix.NETLINK_ROUTE}})
	if err != nil {
		return fmt.Errorf("setting the sandbox's device up: %w", err)
	}
	v.f = files[0]
	if v.in, err = rtnl.New(int(v.f.Fd())); err == nil {
		v.index, err = v.in.Index(wire.NetDevice)
	}
	if err == nil {
		err = v.in.Address(v.index, netip.PrefixFrom(addr, 30))
	}
	if err == nil {
		err = v.in.Up(v.index)
	}
	if err == nil {
		err = v.in.Default(v.index, addr.Prev())
	}
	if err != nil {
		return fmt.Errorf("setting the sandbox's device up: %w", err)
	}
	return nil
}

// watch notices the helper's end. The host's rules are gone then, and so must the device be.
func (v *veth) watch(n *Network) {
	defer close(v.gone)
	_, _ = v.proc.Wait()
	if n.ctx.Err() != nil {
		return
	}
	_ = v.in.Delete(v.index)
	if n.car != nil {
		n.car.close()
	}
	n.lost("sbx-helper ended, so the sandbox has no network any more")
}

// end closes everything; the helper removes the device.
func (v *veth) end() {
	unix.Close(v.sock)
	_, _ = v.proc.Wait()
	if v.f != nil {
		v.f.Close()
	}
}

// close is end for a device that is watched.
func (v *veth) close() {
	_ = unix.Shutdown(v.sock, unix.SHUT_RDWR)
	<-v.gone
	unix.Close(v.sock)
	v.f.Close()
}
