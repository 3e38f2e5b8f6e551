//go:build linux

package network

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// flow is where a packet wants to go.
type flow struct {
	src, dst netip.AddrPort
	proto    byte
}

// parseFlow reads the head of a packet.
func parseFlow(b []byte) (f flow, ok bool) {
	var src, dst netip.Addr
	var rest []byte
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		head := int(b[0]&15) * 4
		if head < 20 || len(b) < head {
			return f, false
		}
		src, dst, f.proto, rest = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), b[9], b[head:]
	case len(b) >= 40 && b[0]>>4 == 6:
		src, dst, f.proto, rest = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), b[6], b[40:]
	default:
		return f, false
	}
	var sp, dp uint16
	switch {
	case (f.proto == unix.IPPROTO_TCP || f.proto == unix.IPPROTO_UDP) && len(rest) >= 4:
		sp, dp = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	case (f.proto == unix.IPPROTO_ICMP || f.proto == unix.IPPROTO_ICMPV6) && len(rest) >= 6:
		sp = binary.BigEndian.Uint16(rest[4:]) // of an echo request: the kernel finds its socket by that
	}
	f.src, f.dst = netip.AddrPortFrom(src, sp), netip.AddrPortFrom(dst, dp)
	return f, true
}

func protoName(p byte) string {
	switch p {
	case unix.IPPROTO_TCP:
		return "tcp"
	case unix.IPPROTO_UDP:
		return "udp"
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		return "icmp"
	}
	return "other"
}

// readLog follows what the rules log.
func (n *Network) readLog() {
	for {
		list, err := n.log.Read()
		if err != nil {
			return
		}
		for _, p := range list {
			f, ok := parseFlow(p.Data)
			if !ok {
				continue
			}
			switch p.Group {
			case groupRefused:
				n.refused(f)
			case groupTurned:
				n.refused(f)
				n.inject(p.Data, n.back)
			case groupHeld:
				n.holdPacket(f, p.Data)
			}
		}
	}
}

// notes passes on what was refused, but not what comes so fast that the record would only grow; that is counted.
type notes struct {
	to     func(Event)
	mu     sync.Mutex
	left   bucket
	spared int
}

const notesAtOnce, notesRate = 500, 50 // a second

func (l *notes) take(e Event) {
	l.mu.Lock()
	ok := !e.Denied || l.left.spend(notesAtOnce, notesRate)
	if !ok {
		l.spared++
	}
	l.mu.Unlock()
	if ok {
		l.to(e)
	}
}

// end says how many were left out.
func (l *notes) end() {
	l.mu.Lock()
	n := l.spared
	l.spared = 0
	l.mu.Unlock()
	if n > 0 {
		l.to(Event{Op: "network", Denied: true, Reason: strconv.Itoa(n) +
			" more refusals came too fast to be written down one by one"})
	}
}

// refused notes a connection that the rules have refused already.
func (n *Network) refused(f flow) {
	e := Event{Op: "connect", Addr: f.dst.Addr(), Port: f.dst.Port(), Proto: protoName(f.proto), Denied: true,
		By: n.refusedBy(who{f.src, protoName(f.proto)}), Host: n.names.nameOf(f.dst.Addr())}
	switch {
	case n.o.NoPing && e.Proto == "icmp" && (n.o.Carrier != "veth" || e.Addr.Is6()):
		e.Reason = "this host gives you no sockets for ping (net.ipv4.ping_group_range), by which alone echo requests " +
			"could leave"
	case e.Proto == "tcp" && n.rules.isRefused(f.dst):
		e.Reason = "an answer or a rule refused it"
	case n.isDenied(f.dst):
		e.Reason = "an address that a rule denies"
	case n.isClosedAt(f.dst):
		e.Reason = closedReason
	case e.Host != "":
		e.Reason = "not open for this port or protocol"
	default:
		e.Reason = "no allowed name led to this address"
	}
	n.o.Note(e)
}
