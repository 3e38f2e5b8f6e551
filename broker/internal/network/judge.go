//go:build linux

package network

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// denies says whether a rule refuses a name at a port, 0 for any.
func (n *Network) denies(h peer.Host, port int) bool {
	return n.o.Denied != nil && n.o.Denied(h, port, n.asks())
}

// leavesOpen says whether the list opens a port of a name that no rule refuses.
func (n *Network) leavesOpen(h peer.Host) bool {
	return slices.ContainsFunc(n.listed(h).ports, func(p ports) bool {
		return !n.denies(h, int(p.lo)) || !n.denies(h, int(p.hi))
	})
}

// judgeName says what a name may be looked up for.
func (n *Network) judgeName(ctx context.Context, h peer.Host, w who) judgement {
	if n.denies(h, 0) && !n.leavesOpen(h) {
		n.o.Note(Event{Op: "lookup", Host: h.Name, By: n.refusedBy(w), Denied: true, Reason: "denied by a rule"})
		return judgement{}
	}
	if n.o.Marked != nil && n.o.Marked(h.Name, func() int { return n.whois(w).PID }) {
		n.o.Note(Event{Op: "lookup", Host: h.Name, By: n.refusedBy(w), Denied: true, Reason: "it has the mark of a decoy"})
		return judgement{}
	}
	made := n.rules.times() // before it is decided
	if n.all() {
		return judgement{allow: true, made: made}
	}
	if j := n.listed(h); j.allow {
		j.made = made
		return j
	}
	if n.o.Ask != nil {
		// Which port it will be is not known yet. The commonest is asked for, and the question says so; any other is when it
		// is used.
		q := n.whois(w).ask(h.Name, 443)
		q.Op = decide.Lookup
		v := n.o.Ask(ctx, q)
		if v.Decision != decide.Allow {
			return judgement{reason: v.Reason}
		}
		return judgement{allow: true, ports: n.answered(v, 443, true), once: !v.Life.Lasts(), until: v.Until, made: made}
	}
	n.o.Note(Event{Op: "lookup", Host: h.Name, By: n.refusedBy(w), Denied: true, Reason: "not in the list of hosts"})
	return judgement{}
}

// listed is what the list and the rules allow a name now, without a question.
func (n *Network) listed(h peer.Host) judgement {
	j, exact := judgement{}, false
	ruled := n.o.Ruled
	if n.o.Rules != nil && len(ruled) > 0 {
		ruled = n.ruled(n.o.Rules().List)
	}
	for _, p := range slices.Concat(n.o.Hosts, ruled) {
		if _, isRange := p.Prefix(); isRange || !p.MatchHost(h) || !n.stillStands(h, p) {
			continue
		}
		j.allow, j.listed = true, true
		j.ports = append(j.ports, portsOf(p, n.o.SNI)...)
		if p.Wide() || p.Below() != "" {
			j.wild = p.String()
		} else {
			exact = true // it is no new name
		}
	}
	if exact {
		j.wild = ""
	}
	return j
}

// stillStands says whether what a pattern allowed at the start is allowed by the rules of this moment.
func (n *Network) stillStands(h peer.Host, p peer.Pattern) bool {
	if n.o.Stands == nil {
		return true
	}
	port, _ := p.Ports()
	v := n.o.Stands(hostAsk(h.Name, cmp.Or(port, 443)))
	if p.UDP() || p.ICMP() { // what is open by TCP says nothing of it, but who is denied is, and who may not hear
		return !n.denies(h, int(port)) && len(v.Labels) == 0
	}
	return v.Decision == decide.Allow
}

// ruled is what rules allowed at the start, and list, the rules in force, still does. Where nothing is decided anew it
// stays.
func (n *Network) ruled(list []policy.Rule) (out []peer.Pattern) {
	now := time.Now()
	for _, p := range n.o.Ruled {
		if n.o.Stands == nil || slices.ContainsFunc(list, func(r policy.Rule) bool {
			return r.Kind == policy.KindHost && r.Decision == policy.Allow && r.Host() == p &&
				(r.Expires.IsZero() || now.Before(r.Expires))
		}) {
			out = append(out, p)
		}
	}
	return out
}

// Reconsider closes what a name opened that the rules of this moment do not allow any more. Connections that exist
// stay; UDP has none.
func (n *Network) Reconsider() {
	n.rules.renew() // what is opened from here on was decided by the rules of this moment
	n.follow()
	defer n.follow() // by the names that are left
	for name, to := range n.names.opened() {
		if slices.ContainsFunc(opening{name: name}.names(), func(host string) bool { return n.isOver(host, to) }) {
			n.shutAddresses(name)
		}
	}
	if err := n.endTalks(); err != nil { // also where a name's time was up already
		n.o.Note(Event{Op: "connect", Failed: true, Reason: err.Error()})
	}
}

// isOver says whether the rules of this moment do not allow a name all that it opened without a question, or refuse it;
// or whether they do not allow an address.
func (n *Network) isOver(host string, to openedFor) bool {
	h, err := peer.Parse(host)
	switch {
	case err != nil:
		return false
	case h.Name == "":
		return slices.ContainsFunc(to.ports(), func(p ports) bool {
			return n.o.Stands(hostAsk(host, p.lo)).Decision != decide.Allow
		})
	case n.denies(h, 0): // what rules deny of some ports alone is in decided
		return true
	}
	now := n.listed(h).ports
	return slices.ContainsFunc(to.listed, func(p ports) bool { return !slices.Contains(now, p) })
}

// follow has what is decided about addresses follow the rules, and says where that fails.
func (n *Network) follow() {
	if err := n.redecide(); err != nil {
		n.lost("having changed rules about addresses act, so that no address is reached: " + err.Error())
	}
}

// Forget closes what a name opened and no other name did; the next program that wants it is decided about anew.
func (n *Network) Forget(name string) {
	n.rules.renew()
	n.shut(name)
}

func (n *Network) shut(name string) {
	if !n.shutAddresses(name) {
		return
	}
	if err := n.endTalks(); err != nil {
		n.o.Note(Event{Op: "connect", Host: name, Failed: true, Reason: err.Error()})
	}
}

// shutAddresses is shut for all but UDP, and says whether something was open.
func (n *Network) shutAddresses(name string) bool {
	n.names.forgetAnswers(name)
	gone := n.names.forgetOpenings(name)
	for addr, keep := range gone {
		if err := n.rules.shut(addr, keep); err != nil {
			n.o.Note(Event{Op: "connect", Host: name, Addr: addr, Failed: true, Reason: err.Error()})
		}
	}
	return len(gone) > 0
}

// answered is what a verdict about one port opens, of a host that has a name or an address only.
func (n *Network) answered(v decide.Verdict, port uint16, isName bool) []ports {
	p := ports{lo: port, hi: port}
	if v.Scope == decide.Dir {
		p = ports{lo: 1, hi: 65535}
	}
	if n.o.SNI && isName {
		return named(p)
	}
	return []ports{p}
}
