//go:build linux

package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// UDP has no connections that could stay when the rule or the answer goes that let them out: each datagram is an access
// of its own. What rules note of it (see talks) only lets answers in, and lets it outlive the time for which a name's
// address is open.

// endTalks ends UDP to where nothing lets it any more.
func (n *Network) endTalks() error {
	if n.rules == nil {
		return nil
	}
	return n.rules.endTalks(n.mayTalk)
}

// mayTalk says whether UDP to an address and port that passed once still does.
func (n *Network) mayTalk(to netip.AddrPort) bool {
	switch n.decidedAbout(to, true) {
	case passes:
		return true
	case refused, waits:
		return false
	}
	if contains(*n.closed.Load(), to.Addr()) {
		return false
	}
	return n.all() || n.rules.isForEverybody(to) || n.names.hasTalked(to)
}

// isForEverybody says whether a port of UDP is open at each address that is not closed.
func (r *rules) isForEverybody(to netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.everybody, func(p ports) bool { return p.udp && p.contains(to.Port()) })
}

// endTalks takes out of talks what may not stay.
func (r *rules) endTalks(stays func(netip.AddrPort) bool) error {
	for _, f := range families() {
		if r.c == nil {
			break
		}
		err := r.c.Prune(table, talks+f.suffix, talkLife, func(key []byte) bool {
			a, ok := netip.AddrFromSlice(key[:f.len])
			return ok && stays(netip.AddrPortFrom(a, binary.BigEndian.Uint16(key[f.len:])))
		})
		if err != nil {
			return fmt.Errorf("ending UDP: %w", err)
		}
	}
	return nil
}
