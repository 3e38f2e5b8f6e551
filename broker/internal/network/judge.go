package network

import (
	"context"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/policy"
)

// judgeName says what a name may be looked up for.
func (n *Network) judgeName(ctx context.Context, h policy.Host, w who) judgement {
	if n.o.Denied != nil && n.o.Denied(h, 0) {
		n.o.Note(Event{Op: "lookup", Host: h.Name, Denied: true, Reason: "denied by a rule"})
		return judgement{}
	}
	if n.o.All {
		return judgement{allow: true}
	}
	j := judgement{}
	for _, p := range n.o.Hosts {
		if _, isRange := p.Prefix(); isRange || !p.MatchHost(h) {
			continue
		}
		j.allow = true
		j.ports = append(j.ports, portsOf(p, n.o.SNI)...)
		if p.Wide() || p.Below() != "" {
			j.wild = p.String()
		}
	}
	if j.allow {
		return j
	}
	if n.o.Ask != nil {
		// Which port it will be is not known yet. The commonest is asked for, any other when it is used.
		q := decide.Ask{PID: n.whois(w), Op: "connect", Kind: policy.KindHost, Host: h.Name, Port: 443}
		q.Exe, q.Cwd = places(q.PID)
		v := n.o.Ask(ctx, q)
		if v.Decision != decide.Allow {
			return judgement{reason: v.Reason}
		}
		return judgement{allow: true, ports: n.answered(v, 443, true), once: v.Life == decide.LifeOnce}
	}
	n.o.Note(Event{Op: "lookup", Host: h.Name, Denied: true, Reason: "not in the list of hosts"})
	return judgement{}
}

// answered is what a verdict about one port opens, of a host that has a name or an address only.
func (n *Network) answered(v decide.Verdict, port uint16, isName bool) []ports {
	p := ports{lo: port, hi: port}
	if v.Scope >= decide.Dir {
		p = ports{lo: 1, hi: 65535}
	}
	if n.o.SNI && isName {
		return named(p)
	}
	return []ports{p}
}
