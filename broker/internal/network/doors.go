//go:build linux

package network

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/netns"
)

// Publish is a port of the host that leads into the sandbox.
type Publish struct {
	Host netip.AddrPort
	Port uint16
}

// ParsePublish reads [IP:]HOST:PORT, or PORT for the same on both sides. Without an address it is the host's loopback.
func ParsePublish(s string) (Publish, error) {
	p := Publish{Host: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 0)}
	addr, rest := "", s
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		if j := strings.LastIndexByte(s[:i], ':'); j >= 0 {
			addr, rest = strings.Trim(s[:j], "[]"), s[j+1:]
		}
	}
	outer, inner, both := strings.Cut(rest, ":")
	if !both {
		inner = outer
	}
	o, err1 := strconv.ParseUint(outer, 10, 16)
	i, err2 := strconv.ParseUint(inner, 10, 16)
	if err1 != nil || err2 != nil || o == 0 || i == 0 {
		return p, fmt.Errorf("%q is not [IP:]HOST:PORT", s)
	}
	if addr != "" {
		a, err := netip.ParseAddr(addr)
		if err != nil {
			return p, fmt.Errorf("%q does not start with an address", s)
		}
		p.Host = netip.AddrPortFrom(a, 0)
	}
	p.Host = netip.AddrPortFrom(p.Host.Addr(), uint16(o))
	p.Port = uint16(i)
	return p, nil
}

// hostPort leads connections to a port of the sandbox's loopback to the same port of the host's.
func (n *Network) hostPort(l net.Listener, port uint16) {
	n.accept(l, func(c net.Conn) {
		src, _ := netip.ParseAddrPort(c.RemoteAddr().String())
		made := n.rules.times()
		if !n.mayDoor(who{src, "tcp"}, port) {
			refuse(c)
			return
		}
		defer n.opened(c, made, func() decide.Ask { return hostAsk(DoorHost, port) })()
		out, err := net.DialTimeout("tcp", net.JoinHostPort("localhost", strconv.Itoa(int(port))), 5*time.Second)
		if err != nil {
			refuse(c)
			return
		}
		defer out.Close()
		splice(c, out)
	})
}

// publish leads connections to a port of the host's to one of the sandbox's loopback.
func (n *Network) publish(l net.Listener, port uint16) {
	n.accept(l, func(c net.Conn) {
		at, _ := netip.ParseAddrPort(c.LocalAddr().String())
		made := n.rules.times()
		if !n.mayDoor(who{}, at.Port()) {
			refuse(c)
			return
		}
		defer n.opened(c, made, func() decide.Ask { return hostAsk(DoorHost, at.Port()) })()
		in, err := n.dialInside(port)
		if err != nil {
			refuse(c)
			return
		}
		defer in.Close()
		splice(c, in)
	})
}

// dialInside connects to a port of the sandbox's loopback.
func (n *Network) dialInside(port uint16) (net.Conn, error) {
	files, err := n.ns.Sockets([]netns.Socket{{Family: unix.AF_INET, Type: unix.SOCK_STREAM}})
	if err != nil {
		return nil, err
	}
	defer files[0].Close()
	to := &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Connect(int(files[0].Fd()), to); err != nil {
		return nil, fmt.Errorf("connecting to port %d inside: %w", port, err)
	}
	return net.FileConn(files[0])
}

// refuse ends a connection with a reset, as a port that nobody listens on does.
func refuse(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}
