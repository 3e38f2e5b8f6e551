//go:build linux

package network

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"time"

	"sbx.example/sbx/broker/internal/network/nft"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// decided is what is decided about a prefix's addresses at ports of one protocol, whatever name leads there: they pass,
// are asked about, or are refused. Of a list the first one that is about an address and a port holds.
type decided struct {
	to    netip.Prefix
	ports ports
	word
}

// word is what rules and lists say of an address and a port.
type word int

const (
	unsaid word = iota
	refused
	waits // for an answer
	passes
)

// addressChain has the rules of what is decided. It can be written anew while all else stays.
const addressChain = "addresses"

// everybodyChain has the rules of what is open for everybody, which can be written anew like these.
const everybodyChain = "everybody"

// Rules are the policy's rules of one moment. The zero value is none.
type Rules struct {
	List  []policy.Rule // those in force
	Match func(policy.Query) (policy.Rule, bool)
}

// decideAddresses says what ranges and rules decide about addresses: first of those that names led to, and then the
// narrowest prefix first.
func (d *decider) decideAddresses(ranges []peer.Pattern, names []led) []decided {
	for _, h := range ranges {
		if _, ok := h.Prefix(); ok {
			d.listed = append(d.listed, h)
		} else if h.Any() {
			d.everybody = append(d.everybody, h)
		}
	}
	var all []netip.Prefix
	known := slices.Clone(d.listed)
	for _, x := range d.rules.List {
		if x.Kind != policy.KindHost || !x.Expires.IsZero() && !d.now.Before(x.Expires) {
			continue
		}
		known = append(known, x.Host())
		if _, ok := x.Host().Prefix(); ok && x.Decision == policy.Allow {
			d.allowed = append(d.allowed, x.Host())
		}
		if (d.all || len(d.everybody) > 0) && x.Host().Any() && x.Decision != policy.Allow {
			all = append(all, netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))
		}
	}
	for _, h := range known {
		if p, ok := h.Prefix(); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int { return cmp.Or(b.Bits()-a.Bits(), a.Addr().Compare(b.Addr())) })
	all = slices.Compact(all)
	var out []decided
	for _, o := range names {
		list := d.aboutLed(o, known)
		if slices.ContainsFunc(list, func(x decided) bool { return x.word == waits }) {
			// nobody is asked about what is refused
			itself := d.about(netip.PrefixFrom(o.addr, o.addr.BitLen()), peer.Host{Addr: o.addr}, known)
			list = append(list, slices.DeleteFunc(itself, func(x decided) bool { return x.word != refused })...)
		}
		out = append(out, list...)
	}
	slices.SortStableFunc(out, func(a, b decided) int { return cmp.Compare(a.word, b.word) })
	for i, p := range all {
		if a, ok := apart(p, all[:i]); ok { // what holds there holds in all of p that is left
			out = append(out, d.about(p, peer.Host{Addr: a}, known)...)
		}
	}
	return out
}

// aboutLed is what of an address is refused, or waits, because a name led there. Where it is open for the names alone
// that lead there, that is of what this one has opened: a list or a rule can open more ports than another leaves.
func (d *decider) aboutLed(o led, known []peer.Pattern) (out []decided) {
	h := peer.Host{Name: o.name}
	if !slices.ContainsFunc(d.rules.List, func(r policy.Rule) bool {
		return r.Kind == policy.KindHost && r.Decision != policy.Allow && r.Host().MatchHost(h)
	}) {
		return nil
	}
	list := slices.DeleteFunc(d.about(netip.PrefixFrom(o.addr, o.addr.BitLen()), h, known), func(x decided) bool {
		return x.word == passes
	})
	if d.open(o.addr) {
		return list
	}
	for _, x := range list {
		for _, p := range o.ports {
			all := x.ports == ports{}
			if !all && (x.ports.udp != p.udp || x.ports.icmp != p.icmp) {
				continue
			}
			if p.sni = false; !all && !p.icmp {
				p.lo, p.hi = max(p.lo, x.ports.lo), min(p.hi, x.ports.hi)
			}
			if y := (decided{x.to, p, x.word}); p.lo <= p.hi && !slices.Contains(out, y) {
				out = append(out, y)
			}
		}
	}
	return out
}

// open says whether an address may be reached without a name.
func (d *decider) open(a netip.Addr) bool {
	return d.all || slices.ContainsFunc(slices.Concat(d.listed, d.allowed), func(h peer.Pattern) bool {
		return h.MatchHost(peer.Host{Addr: a})
	})
}

// apart is an address of p that is in none of the narrower prefixes.
func apart(p netip.Prefix, narrower []netip.Prefix) (netip.Addr, bool) {
	a := p.Addr()
	for i := 0; i < len(narrower); i++ {
		if q := narrower[i]; q.Contains(a) {
			last := a.AsSlice()
			for bit := q.Bits(); bit < a.BitLen(); bit++ {
				last[bit/8] |= 0x80 >> (bit % 8)
			}
			a, _ = netip.AddrFromSlice(last)
			if a = a.Next(); !p.Contains(a) {
				return a, false
			}
			i = -1
		}
	}
	return a, true
}

type decider struct {
	listed, allowed []peer.Pattern // by the settings, and by rules
	everybody       []peer.Pattern // that is, everybody who is not closed, by either
	rules           Rules
	asks            bool // somebody can be asked about the rest
	all             bool // every public address is open
	now             time.Time
}

// about decides about a prefix, of which h is an address like all others, or a name that led there.
func (d *decider) about(p netip.Prefix, h peer.Host, known []peer.Pattern) []decided {
	cuts := []int{1, 80, 81, 443, 444, 1 << 16}
	for _, x := range known {
		if lo, hi := x.Ports(); lo != 0 && x.MatchHost(h) {
			cuts = append(cuts, int(lo), int(hi)+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var out []decided
	closed := 0 // protocols of which nothing passes
	for _, of := range [...]ports{{}, {udp: true}, {icmp: true}} {
		var last *decided
		for i, lo := range cuts[:len(cuts)-1] {
			x := of
			if x.lo, x.hi = uint16(lo), uint16(cuts[i+1]-1); of.icmp {
				x.lo, x.hi = 443, 443 // as for a name
			}
			switch w := d.verdict(h, x); {
			case w == unsaid:
				last = nil
			case last != nil && last.word == w:
				last.ports.hi = x.hi
			default:
				out = append(out, decided{p, x, w})
				last = &out[len(out)-1]
			}
			if of.icmp {
				break
			}
		}
		if last != nil && last.word == refused && (of.icmp || last.ports.lo == 1 && last.ports.hi == 65535) {
			closed++
		}
	}
	if closed == 3 {
		return []decided{{to: p, word: refused}} // by any protocol
	}
	for i := range out {
		if out[i].ports.icmp {
			out[i].ports = ports{icmp: true}
		}
	}
	return out
}

// verdict is about one address or name at ports that rules and lists do not tell apart.
func (d *decider) verdict(h peer.Host, p ports) word {
	covers := func(q peer.Pattern) bool {
		if q.UDP() != p.udp || q.ICMP() != p.icmp || !q.MatchHost(h) {
			return false
		}
		return q.ICMP() || slices.ContainsFunc(portsOf(q, false), func(of ports) bool { return of.contains(p.lo) })
	}
	listed, allowed := slices.ContainsFunc(d.listed, covers), slices.ContainsFunc(d.allowed, covers)
	r, ruled := d.rule(h, int(p.lo))
	if lo, hi := r.Host().Ports(); p.icmp && r.Decision == policy.Deny && lo != 0 && (lo > 1 || hi < 65535) {
		r, ruled = d.rule(h, 0) // what is denied at some ports is no reason against ping
	}
	_, about := r.Host().Prefix()
	switch {
	case ruled && r.Decision != policy.Allow:
		opened := d.all || listed || slices.ContainsFunc(d.everybody, covers)
		if !about && h.Name == "" && !opened { // one about everybody is about names first
			return unsaid
		}
		if r.Decision == policy.Ask && d.asks {
			return waits
		}
		return refused
	case listed, allowed && (ruled || p.udp || p.icmp): // rules that allow TCP say nothing of these
		return passes
	case ruled && about && !p.udp && !p.icmp: // one about everybody opens nothing that is closed
		return passes
	}
	return unsaid
}

func (d *decider) rule(h peer.Host, port int) (r policy.Rule, ruled bool) {
	if d.rules.Match == nil {
		return r, false
	}
	return d.rules.Match(policy.Query{Kind: policy.KindHost, Host: h, Port: port, Access: policy.Connect, Now: d.now})
}

// addresses writes what is decided about addresses. A session that carries labels is asked about what passes as well,
// and nothing but TCP can wait.
func (r *rules) addresses(b *nft.Batch) {
	open := "pass"
	if r.limited {
		open = "ask"
	}
	for _, d := range r.decided {
		chain := map[word]string{refused: "refuse", waits: "held", passes: open}[d.word]
		switch p := d.ports; {
		case p == ports{}:
			b.Rule(addressChain, to(d.to), nft.Goto(chain))
		case !r.limited || d.word != passes || !p.udp && !p.icmp:
			b.Rule(addressChain, to(d.to), p.match(d.to.Addr().Is6()), nft.Goto(chain))
		}
	}
}

// redecide writes anew what is decided about addresses, in one moment, and answers what acts then. Where the kernel
// does not take it no address is reached: what was taken back must not stay open.
func (r *rules) redecide(list []decided, everybody []ports) (now []decided, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	write := func(list []decided, everybody []ports) error {
		r.decided, r.everybody = list, everybody
		b := nft.NewBatch(table)
		b.Empty(addressChain)
		r.addresses(b)
		if !r.limited {
			b.Empty(everybodyChain)
			r.toEverybody(b)
		}
		return r.c.Commit(b)
	}
	if err = write(list, everybody); err == nil {
		return list, nil
	}
	now = []decided{{to: netip.PrefixFrom(netip.IPv4Unspecified(), 0), word: refused},
		{to: netip.PrefixFrom(netip.IPv6Unspecified(), 0), word: refused}}
	return now, errors.Join(err, write(now, nil))
}

// decidedNow is what is decided about addresses by the rules of this moment, and for what ports everybody is open.
func (n *Network) decidedNow() (list []decided, everybody []ports) {
	d := decider{asks: n.asks(), all: n.all(), now: time.Now()}
	if n.o.Rules != nil {
		d.rules = n.o.Rules()
	}
	d.everybody = slices.DeleteFunc(n.ruled(d.rules.List), func(h peer.Pattern) bool { return !h.Any() })
	list = d.decideAddresses(n.o.Hosts, n.names.ledTo(d.now))
	for _, h := range d.everybody {
		everybody = join(everybody, portsOf(h, false))
	}
	return list, everybody
}

// asks says whether somebody is asked about what is not listed. Where every address is open nothing waits.
func (n *Network) asks() bool { return n.o.Ask != nil && !n.all() }

// redecide has what is decided about addresses follow the rules of this moment, and where names led by now.
func (n *Network) redecide() error {
	n.deciding.Lock()
	defer n.deciding.Unlock()
	list, everybody := n.decidedNow()
	if slices.Equal(list, *n.decided.Load()) && (n.rules == nil || slices.Equal(everybody, n.rules.everybody)) {
		return nil
	}
	now, err := n.rules.redecide(list, everybody)
	n.decided.Store(&now) // if not all of it acts, the next change is tried again
	n.tellServed()
	return errors.Join(err, n.endTalks())
}

// deniesAll says whether no port of an address is left that rules do not refuse.
func (n *Network) deniesAll(a netip.Addr) bool {
	list := n.decided.Load()
	if list == nil {
		return false
	}
	from := []uint16{1} // where another word may begin
	for _, d := range *list {
		if !d.to.Contains(a) || d.ports.udp || d.ports.icmp {
			continue
		}
		if d.ports.lo > 1 {
			from = append(from, d.ports.lo)
		}
		if d.ports.hi != 0 && d.ports.hi < 65535 {
			from = append(from, d.ports.hi+1)
		}
	}
	return !slices.ContainsFunc(from, func(port uint16) bool { return !n.isDenied(netip.AddrPortFrom(a, port)) })
}

// isDenied says whether a rule about the address itself refuses connections to it.
func (n *Network) isDenied(at netip.AddrPort) bool { return n.decidedAbout(at, false) == refused }

// decidedAbout is what is decided about an address and a port of TCP, or of UDP.
func (n *Network) decidedAbout(at netip.AddrPort, udp bool) word {
	if list := n.decided.Load(); list != nil {
		for _, d := range *list {
			if d.to.Contains(at.Addr()) && (d.ports == ports{} ||
				d.ports.udp == udp && !d.ports.icmp && d.ports.contains(at.Port())) {
				return d.word
			}
		}
	}
	return unsaid
}

// isOpened says whether a range is open that holds an address.
func (n *Network) isOpened(a netip.Addr) bool {
	list := n.decided.Load()
	return list != nil && slices.ContainsFunc(*list, func(d decided) bool { return d.word == passes && d.to.Contains(a) })
}
