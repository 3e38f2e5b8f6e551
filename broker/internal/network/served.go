//go:build linux

package network

import (
	"net/netip"
	"os"

	"golang.org/x/net/dns/dnsmessage"

	"sbx.example/sbx/broker/plan"
)

// Served are hosts that stand for themselves at an address of the sandbox's own loopback: who looks one up is led
// there, and to no address outside.
type Served struct {
	Names  []string
	Listen []netip.AddrPort
	// Start is given the sockets that listen there, and what may be connected to from there. dir is the session's folder.
	Start func(listeners []*os.File, to Addresses, dir string) error
	// Changed is given other ones while it runs, and never at the same time as Start.
	Changed func(to Addresses)
}

// Addresses are those that nothing may be connected to. What ranges and rules have decided comes before.
type Addresses struct {
	Closed  []netip.Prefix
	Decided []Decided
}

// Decided is what ranges and rules say of a prefix's addresses at ports of TCP: they are open, are refused, or neither.
// Of a list the first one that is about an address and a port holds.
type Decided struct {
	To         netip.Prefix
	Lo, Hi     uint16
	Pass, Deny bool
}

// ServedAddress is where the names lead to.
const ServedAddress = plan.Served

// Serve hands over what listens for Options.Served. dir is the session's folder.
func (n *Network) Serve(dir string) error {
	n.deciding.Lock() // what changes meanwhile is told behind it
	defer n.deciding.Unlock()
	defer n.closeServed()
	return n.o.Served.Start(n.served, n.addresses(), dir)
}

// tellServed has what is served follow the addresses of this moment; n.deciding is held.
func (n *Network) tellServed() {
	if n.o.Served != nil {
		n.o.Served.Changed(n.addresses())
	}
}

// addresses are those of this moment.
func (n *Network) addresses() Addresses {
	to := Addresses{Closed: *n.closed.Load()}
	for _, d := range *n.decided.Load() {
		if d.ports.udp || d.ports.icmp {
			continue
		}
		x := Decided{d.to, d.ports.lo, d.ports.hi, d.word == passes, d.word == refused} // what is served asks nobody
		if d.ports == (ports{}) {
			x.Hi = 65535
		}
		to.Decided = append(to.Decided, x)
	}
	return to
}

// closeServed leaves the listeners to whom they were handed over to: nobody answers there any more once it has ended.
func (n *Network) closeServed() {
	for _, f := range n.served {
		f.Close()
	}
	n.served = nil
}

// servedAt leads a name to what sbx serves inside.
func servedAt(q dnsmessage.Question) answer {
	if q.Type != dnsmessage.TypeA {
		return answer{}
	}
	h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60}
	return answer{records: []dnsmessage.Resource{{Header: h,
		Body: &dnsmessage.AResource{A: netip.MustParseAddr(ServedAddress).As4()}}}}
}
