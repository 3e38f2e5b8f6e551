//go:build linux

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/network/nft"
)

// element is a key of a set.
type element struct {
	set string
	key []byte
}

func single(set string, a netip.AddrPort) element {
	return element{set + suffix(a.Addr()), append(a.Addr().AsSlice(), byte(a.Port()>>8), byte(a.Port()), 0, 0)}
}

// refuse has connections to one port refused at once.
func (r *rules) refuse(a netip.AddrPort, life time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.put([]element{single(denied, a)}, life)
}

// isRefused says whether an answer refused connections to the port a short while ago.
func (r *rules) isRefused(a netip.AddrPort) bool {
	e := single(denied, a)
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.open[e.set+string(e.key)])
}

// errRemade says that it was decided by rules, answers or labels that are others by now.
var errRemade = errors.New("what decides about it has changed meanwhile")

// renew has nothing opened any more that was decided about before.
func (r *rules) renew() {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.made++
	}
}

// times is how often what was decided before became void.
func (r *rules) times() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made
}

// limit makes the table anew: nothing is open, and nothing is known.
func (r *rules) limit(o *Options, closed []netip.Prefix) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.All && !r.limited {
		r.classes = append(classesOf(slices.Concat(o.Hosts, o.Ruled), false), r.classes...)
	}
	r.limited = true
	r.made++
	clear(r.open)
	return r.setUp(o, closed)
}

// admit opens addresses for the ports for as long as life, if nothing was renewed since the made-th time.
// Ports that are no class are single ones.
func (r *rules) admit(addrs []netip.Addr, list []ports, life time.Duration, made int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if made != r.made {
		return errRemade
	}
	var want []element
	for _, a := range addrs {
		for _, p := range list {
			e := element{key: a.AsSlice()}
			if i := slices.Index(r.classes, p); i >= 0 {
				e.set = fmt.Sprintf("c%d%s", i, suffix(a))
			} else {
				e = single(asked, netip.AddrPortFrom(a, p.lo))
			}
			want = append(want, e)
		}
	}
	return r.put(want, life)
}

// answer opens one port that was asked about, whatever class it is of: what waits is looked for among answers alone.
func (r *rules) answer(at netip.AddrPort, life time.Duration, made int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if made != r.made {
		return errRemade
	}
	return r.put([]element{single(asked, at)}, life)
}

// mostOpen bounds what is open and refused at once: the kernel's sets of it have no bound (nft.Batch.Set).
const mostOpen = 65535

var errFull = errors.New("too many addresses are open at once")

// room wants room for the elements, and forgets what is over where it is scarce. r.mu is held.
func (r *rules) room(list []element, now time.Time) error {
	more := 0
	for _, e := range list {
		if _, ok := r.open[e.set+string(e.key)]; !ok {
			more++
		}
	}
	if len(r.open)+more > 4096 {
		for k, until := range r.open {
			if until.Before(now) {
				delete(r.open, k)
			}
		}
	}
	if len(r.open)+more > mostOpen {
		return errFull
	}
	return nil
}

// put has the elements in their sets for as long as life. r.mu is held.
func (r *rules) put(list []element, life time.Duration) error {
	now := time.Now()
	var want []element
	for _, e := range list {
		if until, ok := r.open[e.set+string(e.key)]; !ok || until.Before(now.Add(life-time.Second)) {
			want = append(want, e)
		}
	}
	if err := r.room(want, now); err != nil {
		return err
	}
	for fresh := false; len(want) > 0; fresh = true {
		b := nft.NewBatch(table)
		for _, e := range want {
			until, was := r.open[e.set+string(e.key)]
			// The kernel does not lengthen an element's life: it is taken out and put in, at once.
			if was && !fresh && until.After(now) {
				b.Remove(e.set, e.key)
			}
			b.Element(e.set, e.key, life)
		}
		err := r.c.Commit(b)
		if errors.Is(err, syscall.ENOENT) && !fresh {
			continue // one was just gone
		}
		if err != nil {
			return fmt.Errorf("opening addresses: %w", err)
		}
		for _, e := range want {
			r.open[e.set+string(e.key)] = now.Add(life)
		}
		break
	}
	return nil
}

// shut takes an address out of every set, but for the ports in keep. What is open by the list itself stays.
func (r *rules) shut(a netip.Addr, keep []ports) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed error
	for i, p := range r.classes {
		if !slices.Contains(keep, p) {
			failed = errors.Join(failed, r.remove(element{fmt.Sprintf("c%d%s", i, suffix(a)), a.AsSlice()}))
		}
	}
	key := string(a.AsSlice())
	for k := range r.open {
		rest, ok := strings.CutPrefix(k, asked+suffix(a)+key)
		if !ok || len(rest) != 4 {
			continue
		}
		port := uint16(rest[0])<<8 | uint16(rest[1])
		if !slices.ContainsFunc(keep, func(p ports) bool { return !p.udp && !p.sni && p.contains(port) }) {
			failed = errors.Join(failed, r.remove(single(asked, netip.AddrPortFrom(a, port))))
		}
	}
	return failed
}

// remove takes an element out of its set, if it is there. r.mu is held.
func (r *rules) remove(e element) error {
	k := e.set + string(e.key)
	if _, ok := r.open[k]; !ok {
		return nil
	}
	delete(r.open, k)
	b := nft.NewBatch(table)
	b.Remove(e.set, e.key)
	if err := r.c.Commit(b); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("closing an address: %w", err)
	}
	return nil
}
