//go:build linux

package network

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Traffic is what went to and came from one address.
type Traffic struct {
	Addr                           netip.Addr
	Name                           string // that the connections gave, where that was looked at
	Out, In, PacketsOut, PacketsIn uint64
}

// traffic reads the counters.
func (r *rules) traffic() ([]Traffic, error) {
	all := map[netip.Addr]*Traffic{}
	for _, set := range [...]string{"out-4", "out-6", "in-4", "in-6"} {
		list, err := r.c.Dump(table, set)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			a, ok := netip.AddrFromSlice(e.Key)
			if !ok {
				continue
			}
			t := all[a]
			if t == nil {
				t = &Traffic{Addr: a}
				all[a] = t
			}
			if set[0] == 'o' {
				t.Out, t.PacketsOut = e.Bytes, e.Packets
			} else {
				t.In, t.PacketsIn = e.Bytes, e.Packets
			}
		}
	}
	out := make([]Traffic, 0, len(all))
	for _, t := range all {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Traffic) int { return a.Addr.Compare(b.Addr) })
	return out, nil
}

// counts are what the pass-through carried, by name and address: the rules see these connections on the loopback only.
type counts struct {
	mu sync.Mutex
	m  map[opening]*Traffic
}

func (p *passage) count(out, in int) {
	c := &p.n.passed
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[opening]*Traffic{}
	}
	o := opening{p.name, p.to.Addr()}
	t := c.m[o]
	if t == nil {
		if len(c.m) >= maxEntries {
			return
		}
		t = &Traffic{Addr: o.addr, Name: o.name}
		c.m[o] = t
	}
	t.Out += uint64(out)
	t.In += uint64(in)
}

// full says whether some were not counted.
func (c *counts) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.m) >= maxEntries
}

// add joins the counts with those of the rules.
func (c *counts) add(list []Traffic) []Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joined(list)
}

// take is add for the last time: the counts begin anew.
func (c *counts) take(list []Traffic) []Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	list = c.joined(list)
	clear(c.m)
	return list
}

// joined has one row for each address and name; c.mu is held.
func (c *counts) joined(list []Traffic) (out []Traffic) {
	for _, t := range c.m {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Traffic) int {
		return cmp.Or(a.Addr.Compare(b.Addr), strings.Compare(a.Name,
			b.Name))
	})
	for _, t := range list {
		if last := len(out) - 1; last >= 0 && out[last].Addr == t.Addr && out[last].Name == t.Name {
			out[last].add(t)
			continue
		}
		out = append(out, t)
	}
	return out
}

func (t *Traffic) add(o Traffic) {
	t.Out, t.In, t.PacketsOut, t.PacketsIn = t.Out+o.Out, t.In+o.In, t.PacketsOut+o.PacketsOut, t.PacketsIn+o.PacketsIn
}
