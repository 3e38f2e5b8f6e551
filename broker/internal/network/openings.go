//go:build linux

package network

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// opening is a name and an address that it led to; openedFor says for which ports and how long.
type opening struct {
	name string
	addr netip.Addr
}

type openedFor struct {
	ports  []ports
	until  time.Time
	listed bool // without a question
}

// led is a name that led to an address, with what it opened there.
type led struct {
	opening
	ports []ports
}

// recordOpened notes what a name has opened.
func (r *resolver) recordOpened(name string, addrs []netip.Addr, j judgement, life time.Duration) {
	now, list := time.Now(), j.ports
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.openings) > maxEntries {
		for o, to := range r.openings {
			if to.until.Before(now) {
				delete(r.openings, o)
			}
		}
		if len(r.openings) > maxEntries { // what is lost has to be looked up again
			clear(r.openings)
		}
	}
	for _, a := range addrs {
		o := opening{name, a}
		to := r.openings[o]
		if to.until.Before(now) {
			to.ports = nil
		}
		to.listed = j.listed
		to.until = later(to.until, now.Add(life))
		to.ports = append(to.ports[:len(to.ports):len(to.ports)], list...)
		if len(to.ports) > 64 {
			to.ports = list
		}
		r.openings[o] = to
	}
}

// ledTo are the names that led to addresses, which a program may still use.
func (r *resolver) ledTo(now time.Time) (out []led) {
	if r == nil { // nothing is served yet
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for o, to := range r.openings {
		if o.name != o.addr.String() && to.until.After(now) {
			out = append(out, led{o, to.ports})
		}
	}
	slices.SortFunc(out, func(a, b led) int {
		return cmp.Or(cmp.Compare(a.name, b.name), a.addr.Compare(b.addr))
	})
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// opened are the names that have opened something, and addresses that somebody was asked about: for which ports, and
// whether they did without a question.
func (r *resolver) opened() map[string]openedFor {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]openedFor{}
	for o, to := range r.openings {
		all := out[o.name]
		out[o.name] = openedFor{ports: append(all.ports, to.ports...), listed: all.listed || to.listed}
	}
	return out
}

// forgetOpenings forgets where a name led, and returns those addresses with what other names have opened there.
func (r *resolver) forgetOpenings(name string) map[netip.Addr][]ports {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[netip.Addr][]ports{}
	for o := range r.openings {
		if o.name == name {
			out[o.addr] = nil
			delete(r.openings, o)
		}
	}
	for o, to := range r.openings {
		if keep, ok := out[o.addr]; ok && to.until.After(now) {
			out[o.addr] = append(keep, to.ports...)
		}
	}
	for a, n := range r.names {
		if n == name {
			delete(r.names, a)
		}
	}
	return out
}

// hasOpened says whether a name has led to an address and was allowed for the port, by TCP.
func (r *resolver) hasOpened(name string, at netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, ok := r.openings[opening{name, at.Addr()}]
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
