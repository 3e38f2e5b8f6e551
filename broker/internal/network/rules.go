//go:build linux

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/network/nft"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// table is the one table in the sandbox's namespace.
const table = "sbx"

// Log groups: connections that were refused, and first packets that wait for an answer.
const (
	groupRefused = 5
	groupHeld    = 6
	groupTurned  = 7 // refused, but for what marks them: they wait until it is known whose they are
)

// markRefused is the mark of packets that come back to be refused.
const markRefused = 1

// ports is what a name or range is open for.
type ports struct {
	lo, hi uint16
	udp    bool
	icmp   bool // echo requests, without ports
	sni    bool // by connections that name the host only (pass.go)
}

// match is what packets for the ports look like in one family.
func (p ports) match(v6 bool) nft.Expr {
	if p.icmp {
		return nft.Ping(v6)
	}
	return append(nft.Protocol(p.proto()), nft.Ports(p.lo, p.hi)...)
}

func (p ports) proto() byte {
	if p.udp {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
}

func (p ports) contains(port uint16) bool { return p.lo <= port && port <= p.hi }

var errGone = errors.New("the network has been closed")

// rules are the kernel's side: a table whose sets this process alone fills.
type rules struct {
	c       *nft.Conn
	classes []ports // what names are open for; class i has the sets ci-4 and ci-6
	decided []decided
	// everybody are the ports that are open at each address that is not closed
	everybody []ports
	limited   bool // see Limit
	made      int  // how often the table was made
	mu        sync.Mutex
	open      map[string]time.Time // set and key → when the kernel drops it
}

// hostAddrs are sets of addresses that the host has been given since the rules were made.
const hostAddrs = "host"

// close closes addresses for good.
func (r *rules) close(addrs []netip.Addr) error {
	b := nft.NewBatch(table)
	for _, a := range addrs {
		b.Element(hostAddrs+suffix(a), a.AsSlice(), 10*365*24*time.Hour)
	}
	return r.c.Commit(b)
}

// Sets of single answers: an address and a port.
const (
	asked  = "asked"
	denied = "denied"
)

func suffix(a netip.Addr) string {
	if a.Is4() {
		return "-4"
	}
	return "-6"
}

// setUp makes the table. Nothing is open before it is there, because the device that leads out is made later.
func (r *rules) setUp(o *Options, closed []netip.Prefix) error {
	err := r.make(o, closed, []nft.Expr{nft.FromHere()})
	if errors.Is(err, syscall.ENOENT) { // where a kernel cannot say it, IPv6 inside has one address that speaks to itself
		err = r.make(o, closed, []nft.Expr{nft.IPv4(), append(nft.IPv6(), nft.From(netip.IPv6Loopback().AsSlice())...)})
	}
	return err
}

// make makes the table. own are what packets with a source of the namespace's own look like.
func (r *rules) make(o *Options, closed []netip.Prefix, own []nft.Expr) error {
	b := nft.NewBatch(table)
	if r.limited {
		b.Renewed()
	} else {
		b.Table()
	}
	asks := r.limited || o.Ask != nil && !o.All
	if asks {
		b.Chain("ask")
		b.Chain("held")
	}
	r.sets(b, o)
	r.refusal(b)
	r.pass(b)
	b.Chain(addressChain)
	within(b, own)
	b.BaseChain("output", "filter", nft.Output, nft.PrioAfter, false)
	b.Rule("output", nft.LeavingLo(), nft.Goto("within"))
	if hasSNI(r.classes) {
		// What leads to the pass-through left by the device when it was routed, and leaves by lo now.
		b.Rule("output", nft.Redirected(), nft.Goto("within"))
		r.redirect(b)
	}
	r.knownOut(b)
	b.Rule("output", nft.IPv6(), nft.ICMPv6(133, 136), nft.Accept()) // neighbours; nothing else finds the gateway
	b.Rule("output", nft.IPv6(), nft.ICMPv6(130, 143), nft.Drop())
	if o.NoPing {
		if o.Carrier != "veth" { // the kernel carries those
			b.Rule("output", nft.IPv4(), nft.Ping(false), nft.Goto("refuse"))
		}
		b.Rule("output", nft.IPv6(), nft.Ping(true), nft.Goto("refuse"))
	}
	r.closing(b, closed)
	if !r.limited {
		b.Chain(everybodyChain)
		r.toEverybody(b)
		b.Rule("output", nft.Jump(everybodyChain))
	}
	switch {
	case asks:
		r.listed(b, "ask")
		b.Rule("ask", nft.Goto("held"))
		r.answers(b, o, "held")
		b.Rule("output", nft.Goto("ask"))
	case o.All:
		b.Rule("output", nft.Goto("pass"))
	default:
		r.listed(b, "output")
		r.answers(b, o, "output")
	}
	r.input(b)
	return r.c.Commit(b)
}

// sets are those that are filled while the network is used.
func (r *rules) sets(b *nft.Batch, o *Options) {
	for _, f := range families() {
		b.Set("out"+f.suffix, f.kind, f.len, nft.Counting)
		b.Set("in"+f.suffix, f.kind, f.len, nft.Counting)
		b.Set(hostAddrs+f.suffix, f.kind, f.len, nft.Timed)
		if o.All && !r.limited {
			continue
		}
		b.Set(asked+f.suffix, f.kind<<6|13, f.len+4, nft.Timed)
		b.Set(denied+f.suffix, f.kind<<6|13, f.len+4, nft.Timed)
		for i := range r.classes {
			b.Set(fmt.Sprintf("c%d%s", i, f.suffix), f.kind, f.len, nft.Timed)
		}
	}
}

// closing are the rules about addresses: what is decided about them, and what is closed.
func (r *rules) closing(b *nft.Batch, closed []netip.Prefix) {
	r.addresses(b)
	b.Rule("output", nft.Jump(addressChain))
	for _, p := range closed {
		b.Rule("output", to(p), nft.Goto("refuse"))
	}
	for _, f := range families() {
		b.Rule("output", f.match, nft.ToSet(f.len, hostAddrs+f.suffix), nft.Goto("refuse"))
	}
}

// listed are the rules that look into the sets of what names have opened.
func (r *rules) listed(b *nft.Batch, chain string) {
	for _, f := range families() {
		for i, p := range r.classes {
			if p.sni {
				continue // its connections are led to the pass-through
			}
			b.Rule(chain, f.match, p.match(f.len == 16), nft.ToSet(f.len, fmt.Sprintf("c%d%s", i, f.suffix)),
				nft.Goto("pass"))
		}
	}
}

// answers are the rules that look into the sets of single answers, and what has none.
func (r *rules) answers(b *nft.Batch, o *Options, chain string) {
	for _, f := range families() {
		b.Rule(chain, f.match, nft.Protocol(unix.IPPROTO_TCP), nft.ToPortSet(f.len, asked+f.suffix), nft.Goto("pass"))
		b.Rule(chain, f.match, nft.Protocol(unix.IPPROTO_TCP), nft.ToPortSet(f.len, denied+f.suffix), nft.Goto("refuse"))
	}
	if r.limited {
		r.known(b, o, chain)
	}
	if o.Ask != nil {
		// The first packet waits at the broker, which sends it again when it may pass. A datagram cannot wait: its sender
		// would be told of an error, so those are refused until they are listed.
		b.Rule(chain, nft.Protocol(unix.IPPROTO_TCP), nft.Log(groupHeld, 0xffff), nft.Drop())
	}
	b.Rule(chain, nft.Goto("refuse"))
}

// toEverybody writes by which rules each address passes that is not closed.
func (r *rules) toEverybody(b *nft.Batch) {
	for _, p := range r.everybody {
		b.Rule(everybodyChain, nft.IPv4(), p.match(false), nft.Goto("pass"))
		b.Rule(everybodyChain, nft.IPv6(), p.match(true), nft.Goto("pass"))
	}
}

// known are the rules about connections that were open when the session began to carry labels.
func (r *rules) known(b *nft.Batch, o *Options, chain string) {
	if o.Cut {
		b.Rule(chain, nft.TCPFlags(syn, 0), nft.Reset())
		return
	}
	// What a program sends waits like a first packet. What the kernel sends by itself, to acknowledge or to close, asks
	// nobody.
	b.Rule(chain, nft.TCPFlags(syn|psh, 0), nft.Drop())
}

func count(b *nft.Batch, chain string, source bool) {
	set := "out"
	if source {
		set = "in"
	}
	b.Rule(chain, nft.IPv4(), nft.Count(4, source, set+"-4"))
	b.Rule(chain, nft.IPv6(), nft.Count(16, source, set+"-6"))
}

func to(p netip.Prefix) nft.Expr {
	match := nft.IPv6()
	if p.Addr().Is4() {
		match = nft.IPv4()
	}
	return append(match, nft.To(p.Addr().AsSlice(), p.Bits())...)
}

// portsOf lists what a pattern opens: without a port 80 and 443. With sni all names are to be named on these two.
func portsOf(h peer.Pattern, sni bool) []ports {
	if h.ICMP() {
		return []ports{{icmp: true}}
	}
	lo, hi := h.Ports()
	p := ports{lo: lo, hi: hi, udp: h.UDP(), sni: h.SNI()}
	_, isRange := h.Prefix()
	sni = sni && !p.udp && !isRange && !h.Any()
	if lo == 0 {
		p.sni = p.sni || sni
		q := p
		p.lo, p.hi, q.lo, q.hi = 80, 80, 443, 443
		return []ports{p, q}
	}
	if !sni || p.sni {
		return []ports{p}
	}
	return named(p)
}

// named has the ports 80 and 443 of p for connections that name the host.
func named(p ports) []ports {
	var out []ports
	if p.lo != p.hi || p.lo != 80 && p.lo != 443 {
		out = append(out, p)
	}
	for _, q := range []uint16{80, 443} {
		if p.contains(q) {
			out = append(out, ports{lo: q, hi: q, sni: true})
		}
	}
	return out
}

func hasSNI(list []ports) bool { return slices.ContainsFunc(list, func(p ports) bool { return p.sni }) }

// redirect leads the connections that have to name their host to the pass-through.
func (r *rules) redirect(b *nft.Batch) {
	b.BaseChain("redirect", "nat", nft.Output, nft.PrioNat, true)
	for _, f := range families() {
		for i, p := range r.classes {
			if p.sni {
				b.Rule("redirect", f.match, nft.Protocol(p.proto()), nft.Ports(p.lo, p.hi), nft.ToSet(f.len, fmt.Sprintf("c%d%s",
					i, f.suffix)), nft.Redirect(passPort))
			}
		}
	}
}

// classesOf collects the distinct ports of all patterns that are not ranges.
func classesOf(hosts []peer.Pattern, sni bool) []ports {
	var out []ports
	if sni { // for names that are asked about too
		out = []ports{{lo: 80, hi: 80, sni: true}, {lo: 443, hi: 443, sni: true}}
	}
	for _, h := range hosts {
		if _, isRange := h.Prefix(); isRange {
			continue
		}
		for _, p := range portsOf(h, sni) {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}
