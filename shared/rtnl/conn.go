//go:build linux

package rtnl

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Conn is a netlink socket. Whoever sends needs CAP_NET_ADMIN over its network namespace.
type Conn struct {
	FD  int
	seq uint32
}

// patience bounds the wait for the kernel, which answers at once.
var patience = [1]unix.Timeval{{Sec: 5}}

// Open makes a socket of a netlink protocol in this process's network namespace.
func Open(protocol int) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, fmt.Errorf("making a netlink socket: %w", err)
	}
	return New(fd)
}

// New takes a socket that was made elsewhere.
func New(fd int) (*Conn, error) {
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience[0]); err != nil {
		return nil, fmt.Errorf("preparing a netlink socket: %w", err)
	}
	return &Conn{FD: fd}, nil
}

// Message is one message: its kind and flags, its fixed header and its attributes.
type Message struct {
	Kind  int
	Flags int
	Body  []byte
}

// Do sends messages, all in one piece, and waits until the last one that asks for it is acknowledged, one is
// refused, or all that was asked for has come. What else comes is given to each, which may be nil. EAGAIN: a list has
// changed while it was made, and may lack something (NLM_F_DUMP_INTR, Documentation/userspace-api/netlink/intro.rst).
func (c *Conn) Do(messages []Message, each func(kind int, body []byte)) error {
	var out []byte
	first := c.seq + 1
	for _, m := range messages {
		c.seq++
		b := make([]byte, 16, 16+len(m.Body))
		binary.NativeEndian.PutUint32(b, uint32(16+len(m.Body)))
		binary.NativeEndian.PutUint16(b[4:], uint16(m.Kind))
		binary.NativeEndian.PutUint16(b[6:], uint16(m.Flags|unix.NLM_F_REQUEST))
		binary.NativeEndian.PutUint32(b[8:], c.seq)
		out = append(out, append(b, m.Body...)...)
	}
	// With an address the kernel checks the socket's maker as well as the sender (__netlink_ns_capable).
	if err := unix.Sendto(c.FD, out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	waits := 0
	for i, m := range messages {
		if m.Flags&unix.NLM_F_ACK != 0 {
			waits = i + 1
		}
	}
	buf, flags := make([]byte, 1<<16), uint16(0)
	for {
		n, err := unix.Read(c.FD, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for b := buf[:n]; len(b) >= 16; {
			size := int(binary.NativeEndian.Uint32(b))
			if size < 16 || size > len(b) {
				return syscall.EBADMSG
			}
			kind, seq := int(binary.NativeEndian.Uint16(b[4:])), binary.NativeEndian.Uint32(b[8:])
			flags |= binary.NativeEndian.Uint16(b[6:])
			switch {
			case seq < first || seq > c.seq:
			case kind == unix.NLMSG_DONE && flags&unix.NLM_F_DUMP_INTR != 0:
				return unix.EAGAIN
			case kind == unix.NLMSG_DONE:
				return nil
			case kind == unix.NLMSG_ERROR && size >= 20:
				if errno := -int32(binary.NativeEndian.Uint32(b[16:])); errno != 0 {
					return syscall.Errno(errno)
				}
				if seq == first+uint32(waits)-1 {
					return nil
				}
			case each != nil:
				each(kind, b[16:size])
			}
			b = b[min((size+3)&^3, len(b)):]
		}
	}
}

// Attr is one attribute, padded to four bytes.
func Attr(kind int, payload ...[]byte) []byte {
	n := 4
	for _, p := range payload {
		n += len(p)
	}
	b := make([]byte, 4, (n+3)&^3)
	binary.NativeEndian.PutUint16(b, uint16(n))
	binary.NativeEndian.PutUint16(b[2:], uint16(kind))
	for _, p := range payload {
		b = append(b, p...)
	}
	return b[:cap(b)]
}

// Text is an attribute that holds a name.
func Text(kind int, s string) []byte { return Attr(kind, append([]byte(s), 0)) }

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

// link is struct ifinfomsg.
func link(index int, flags, change uint32) []byte {
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], flags)
	binary.NativeEndian.PutUint32(b[12:], change)
	return b
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

const vethPeer = 1 // VETH_INFO_PEER

// Veth makes a pair of devices, one of them named peer in the network namespace netns. It fails
// with EEXIST where there is a device of the name.
func (c *Conn) Veth(name, peer string, netns int) error {
	other := Attr(vethPeer, link(0, 0, 0), Text(unix.IFLA_IFNAME, peer), Attr(unix.IFLA_NET_NS_FD, u32(uint32(netns))))
	body := join(link(0, 0, 0), Text(unix.IFLA_IFNAME, name), Attr(unix.IFLA_LINKINFO, Text(unix.IFLA_INFO_KIND, "veth"), Attr(unix.IFLA_INFO_DATA, other)))
	return c.one(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, body)
}

// Index is the number of a device.
func (c *Conn) Index(name string) (index int, err error) {
	err = c.Do([]Message{{unix.RTM_GETLINK, unix.NLM_F_ACK, join(link(0, 0, 0), Text(unix.IFLA_IFNAME, name))}}, func(kind int, b []byte) {
		if kind == unix.RTM_NEWLINK && len(b) >= 16 {
			index = int(binary.NativeEndian.Uint32(b[4:]))
		}
	})
	return index, err
}

// Up brings a device up.
func (c *Conn) Up(index int) error {
	return c.one(unix.RTM_NEWLINK, 0, link(index, unix.IFF_UP, unix.IFF_UP))
}

// Alias gives a device a text that says whose it is.
func (c *Conn) Alias(index int, text string) error {
	return c.one(unix.RTM_SETLINK, 0, join(link(index, 0, 0), Attr(unix.IFLA_IFALIAS, []byte(text))))
}

// Delete removes a device, and with it its peer.
func (c *Conn) Delete(index int) error { return c.one(unix.RTM_DELLINK, 0, link(index, 0, 0)) }

// Address gives a device an IPv4 address.
func (c *Conn) Address(index int, p netip.Prefix) error {
	a := p.Addr().As4()
	head := make([]byte, 8) // struct ifaddrmsg
	head[0], head[1] = unix.AF_INET, byte(p.Bits())
	binary.NativeEndian.PutUint32(head[4:], uint32(index))
	return c.one(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, join(head, Attr(unix.IFA_LOCAL, a[:]), Attr(unix.IFA_ADDRESS, a[:])))
}

// Default makes the route that everything else takes.
func (c *Conn) Default(index int, gateway netip.Addr) error {
	g := gateway.As4()
	head := []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, 0, 0, 0, 0}
	return c.one(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, join(head, Attr(unix.RTA_GATEWAY, g[:]), Attr(unix.RTA_OIF, u32(uint32(index)))))
}

// Way is the number of the device by which packets leave for an address; 0 where they do not.
func (c *Conn) Way(to netip.Addr) (index int, err error) {
	a := to.As4()
	head := []byte{unix.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	err = c.Do([]Message{{unix.RTM_GETROUTE, unix.NLM_F_ACK, join(head, Attr(unix.RTA_DST, a[:]))}}, func(kind int, b []byte) {
		if kind != unix.RTM_NEWROUTE || len(b) < 12 || b[7] != unix.RTN_UNICAST {
			return
		}
		Attrs(b[12:], func(kind int, v []byte) {
			if kind == unix.RTA_OIF && len(v) >= 4 {
				index = int(binary.NativeEndian.Uint32(v))
			}
		})
	})
	return index, err
}

// Unclaimed says whether nothing but the default route, or a half of one, leads to an address: else it is somebody's.
func (c *Conn) Unclaimed(a netip.Addr) bool {
	to := a.As4()
	head := binary.NativeEndian.AppendUint32([]byte{unix.AF_INET, 32, 0, 0, 0, 0, 0, 0}, unix.RTM_F_FIB_MATCH) // Linux 4.13
	yes := false
	err := c.Do([]Message{{unix.RTM_GETROUTE, unix.NLM_F_ACK, join(head, Attr(unix.RTA_DST, to[:]))}}, func(kind int, b []byte) {
		yes = kind == unix.RTM_NEWROUTE && len(b) >= 12 && b[1] <= 1 && b[7] == unix.RTN_UNICAST // its length and type
	})
	return yes && err == nil
}

// Attrs calls each with every attribute in b.
func Attrs(b []byte, each func(kind int, v []byte)) {
	for len(b) >= 4 {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return
		}
		each(int(binary.NativeEndian.Uint16(b[2:])), b[4:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// Texts are what two kinds of attributes hold.
func Texts(b []byte, first, second int) (one, other string) {
	Attrs(b, func(kind int, v []byte) {
		switch kind {
		case first:
			one = unix.ByteSliceToString(v)
		case second:
			other = unix.ByteSliceToString(v)
		}
	})
	return one, other
}

// Devices calls each with the name and the alias of every device.
func (c *Conn) Devices(each func(name, alias string)) error {
	return c.Do([]Message{{unix.RTM_GETLINK, unix.NLM_F_DUMP, link(0, 0, 0)}}, func(kind int, b []byte) {
		if kind == unix.RTM_NEWLINK && len(b) >= 16 {
			each(Texts(b[16:], unix.IFLA_IFNAME, unix.IFLA_IFALIAS))
		}
	})
}

func (c *Conn) one(kind, flags int, body []byte) error {
	return c.Do([]Message{{kind, flags | unix.NLM_F_ACK, body}}, nil)
}
