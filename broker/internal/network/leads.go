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
	ports []ports
	until time.Time
}

// led notes what a name has opened.
func (r *resolver) led(name string, addrs []netip.Addr, list []ports, life time.Duration) {
	now := time.Now()
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
