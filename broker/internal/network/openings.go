//go:build linux

package network

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// opening is a name and an address that it led to; openedFor says for which ports and how long. Where several were
// asked about, names that share the address or the address itself, the name is all of them.
type opening struct {
	name string
	addr netip.Addr
}

// together is the name of an opening of several.
func together(names []string) string { return strings.Join(names, " ") }

func (o opening) names() []string { return strings.Fields(o.name) }

type openedFor struct {
	listed, answered []ports  // without a question, and by an answer
	aliases          []string // see judgement
	until            time.Time
}

func (to openedFor) ports() []ports { return slices.Concat(to.listed, to.answered) }

// led is a name that led to an address, with what it opened there.
type led struct {
	opening
	ports []ports
}

// recordOpened notes what a name has opened.
func (r *resolver) recordOpened(name string, addrs []netip.Addr, j judgement, life time.Duration) {
	for r.crowded(len(addrs)) {
		r.shut(r.firstToEnd()) // it has to be looked up again: what is open is never forgotten
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range addrs {
		o := opening{name, a}
		to := r.openings[o]
		if to.until.Before(now) {
			to = openedFor{}
		}
		to.until = later(to.until, now.Add(life))
		if j.listed {
			to.listed = join(to.listed, j.ports)
		} else {
			to.answered = join(to.answered, j.ports)
		}
		to.aliases = join(to.aliases, j.aliases)
		r.openings[o] = to
	}
}

// crowded says whether so many more openings are too many. Those that are over go.
func (r *resolver) crowded(more int) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.openings)+more > maxEntries {
		maps.DeleteFunc(r.openings, func(_ opening, to openedFor) bool { return to.until.Before(now) })
	}
	return len(r.openings) > 0 && len(r.openings)+more > maxEntries
}

// firstToEnd is the name of the opening that ends first.
func (r *resolver) firstToEnd() (name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first time.Time
	for o, to := range r.openings {
		if name == "" || to.until.Before(first) {
			name, first = o.name, to.until
		}
	}
	return name
}

// join is a with what of b is not in it; a stays as it is.
func join[T comparable](a, b []T) []T {
	out := slices.Clone(a)
	for _, p := range b {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// ledTo are the names that led to addresses, which a program may still use, and their aliases.
func (r *resolver) ledTo(now time.Time) (out []led) {
	if r == nil { // nothing is served yet
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for o, to := range r.openings {
		for _, name := range slices.Concat(o.names(), to.aliases) {
			if name != o.addr.String() && to.until.After(now) {
				out = append(out, led{opening{name, o.addr}, to.ports()})
			}
		}
	}
	slices.SortFunc(out, func(a, b led) int {
		return cmp.Or(cmp.Compare(a.name, b.name), a.addr.Compare(b.addr))
	})
	return out
}

// ledAt are the names that led to an address which a program may still use, and their aliases: of one name, or with ""
// of all. Unlike those of namesOf none is ever left out.
func (r *resolver) ledAt(a netip.Addr, of string) (out []string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for o, to := range r.openings {
		switch {
		case o.addr != a || !to.until.After(now):
		case of == "":
			out = append(append(out, o.names()...), to.aliases...)
		case slices.Contains(o.names(), of):
			out = append(append(out, of), to.aliases...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hasTalked says whether some name has led to an address and was allowed the port of UDP there. How long ago that was
// is not asked: what goes on between two ports outlives the answer that led there.
func (r *resolver) hasTalked(at netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o, to := range r.openings {
		if o.addr == at.Addr() && slices.ContainsFunc(to.ports(), func(p ports) bool {
			return p.udp && p.contains(at.Port())
		}) {
			return true
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// opened are the names that have opened something, and addresses that somebody was asked about: for which ports.
func (r *resolver) opened() map[string]openedFor {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]openedFor{}
	for o, to := range r.openings {
		all := out[o.name]
		out[o.name] = openedFor{listed: join(all.listed, to.listed), answered: join(all.answered, to.answered)}
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
		if o.name == name || slices.Contains(o.names(), name) {
			out[o.addr] = nil
			delete(r.openings, o)
		}
	}
	for o, to := range r.openings {
		if keep, ok := out[o.addr]; ok && to.until.After(now) {
			out[o.addr] = append(keep, to.ports()...)
		}
	}
	for a, list := range r.names {
		if list = slices.DeleteFunc(list, func(n string) bool { return n == name }); len(list) == 0 {
			delete(r.names, a)
		} else {
			r.names[a] = list
		}
	}
	return out
}

// hasOpened says whether a name has led to an address and was allowed for the port, by TCP, and whether by an answer.
func (r *resolver) hasOpened(name string, at netip.AddrPort) (opened, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	holds := func(p ports) bool { return !p.udp && p.contains(at.Port()) }
	for o, to := range r.openings {
		if o.addr == at.Addr() && to.until.After(time.Now()) && slices.Contains(o.names(), name) {
			opened = opened || slices.ContainsFunc(to.ports(), holds)
			answered = answered || slices.ContainsFunc(to.answered, holds)
		}
	}
	return opened, answered
}
