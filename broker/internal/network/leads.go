package network

import (
	"net/netip"
	"time"
)

// lead is a name and an address that it led to; leadTo says for which ports and how long.
type lead struct {
	name string
	addr netip.Addr
}

type leadTo struct {
	ports  []ports
	until  time.Time
	listed bool // without a question
}

// led notes what a name has opened.
func (r *resolver) led(name string, addrs []netip.Addr, j judgement, life time.Duration) {
	now, list := time.Now(), j.ports
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.leads) > maxEntries {
		for l, to := range r.leads {
			if to.until.Before(now) {
				delete(r.leads, l)
			}
		}
		if len(r.leads) > maxEntries { // what is lost has to be looked up again
			clear(r.leads)
		}
	}
	for _, a := range addrs {
		l := lead{name, a}
		to := r.leads[l]
		if to.until.Before(now) {
			to.ports = nil
		}
		to.listed = j.listed
		to.until = later(to.until, now.Add(life))
		to.ports = append(to.ports[:len(to.ports):len(to.ports)], list...)
		if len(to.ports) > 64 {
			to.ports = list
		}
		r.leads[l] = to
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// opened are the names that have opened something, and whether they did without a question.
func (r *resolver) opened() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]bool{}
	for l, to := range r.leads {
		out[l.name] = out[l.name] || to.listed
	}
	return out
}

// unlead forgets where a name led, and returns those addresses with what other names have opened there.
func (r *resolver) unlead(name string) map[netip.Addr][]ports {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[netip.Addr][]ports{}
	for l := range r.leads {
		if l.name == name {
			out[l.addr] = nil
			delete(r.leads, l)
		}
	}
	for l, to := range r.leads {
		if keep, ok := out[l.addr]; ok && to.until.After(now) {
			out[l.addr] = append(keep, to.ports...)
		}
	}
	for a, n := range r.names {
		if n == name {
			delete(r.names, a)
		}
	}
	return out
}

// leadsTo says whether a name has led to an address and was allowed for the port, by TCP.
func (r *resolver) leadsTo(name string, at netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, ok := r.leads[lead{name, at.Addr()}]
	if !ok || to.until.Before(time.Now()) {
		return false
	}
	for _, p := range to.ports {
		if !p.udp && p.contains(at.Port()) {
			return true
		}
	}
	return false
}
