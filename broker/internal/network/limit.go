//go:build linux

package network

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
)

// A session that has read what not everybody may hear of is limited: nothing that was open stays open, and all that
// leaves is decided about, with the labels that it carries.

// all says whether every public address is open.
func (n *Network) all() bool { return n.o.All && !n.limited.Load() }

// Limit closes what is open, and has all that leaves decided about from now on, what is connected already as well.
func (n *Network) Limit() error {
	n.limits.Lock()
	defer n.limits.Unlock()
	traffic, err := n.rules.traffic()
	if err != nil {
		return fmt.Errorf("reading what went where: %w", err)
	}
	n.limited.Store(true)
	if err := n.rules.limit(&n.o, *n.closed.Load()); err != nil {
		return fmt.Errorf("setting the sandbox's network rules: %w", err)
	}
	n.names.limit()
	n.mu.Lock()
	n.past = append(n.past, n.passed.take(traffic)...)
	clear(n.through)
	live := maps.Clone(n.live)
	n.mu.Unlock()
	for c, to := range live {
		if n.o.Stands == nil || n.o.Stands(to()).Decision != decide.Allow {
			_ = c.Close()
		}
	}
	return nil
}

// limit forgets what names have opened.
func (r *resolver) limit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.cache)
	clear(r.openings)
	clear(r.sent)
}

// opened notes a connection that this process carries, begun when the rules had been made so often, and returns what
// forgets it. Where they were made anew meanwhile it ends.
func (n *Network) opened(c net.Conn, made int, to func() decide.Ask) func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rules.times() != made {
		_ = c.Close()
	}
	n.live[c] = to
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.live, c)
	}
}

// DoorHost is what the host is called where a port leads to or from it.
const DoorHost = "localhost"

// mayDoor says whether a port may lead to or from the host now.
func (n *Network) mayDoor(w who, port uint16) bool {
	if n.limited.Load() && (n.o.Ask == nil || n.o.Ask(n.ctx, n.whois(w).ask(DoorHost, port)).Decision != decide.Allow) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.through[port] = true
	return true
}

// Contacts are those with whom somebody inside has been in contact since Limit: addresses that packets went to, by the
// names that led there, names that were looked up, and ports of the host's.
func (n *Network) Contacts() (out []decide.Contact) {
	add := func(name string) {
		c := decide.Contact{Kind: policy.KindHost, Name: name}
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	everybody := func() { add("everybody whom the network leads to") } // where nobody can tell, it is as bad as it can be
	traffic, err := n.rules.traffic()
	if err != nil || n.passed.full() {
		everybody()
	}
	n.contacted(n.passed.add(traffic), add)
	n.names.mu.Lock()
	if len(n.names.sent) >= maxEntries {
		everybody()
	}
	for name := range n.names.sent {
		add(name)
	}
	n.names.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	for port := range n.through {
		out = append(out, decide.Contact{Kind: policy.KindHost, Name: DoorHost, Port: int(port)})
	}
	slices.SortFunc(out, func(a, b decide.Contact) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	return out
}

// contacted adds to whom packets went: by all the names that led to an address, where the connection gave none.
func (n *Network) contacted(traffic []Traffic, add func(string)) {
	for _, t := range traffic {
		if t.Out == 0 || t.Addr.IsMulticast() || t.Addr.IsLinkLocalUnicast() { // those are neighbours
			continue
		}
		names := []string{t.Name}
		if t.Name == "" {
			names = n.names.namesOf(t.Addr)
		}
		for _, name := range names {
			add(name)
		}
		if len(names) == 0 || len(names) > maxShared {
			add(t.Addr.String())
		}
	}
}
