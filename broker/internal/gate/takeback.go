//go:build linux

package gate

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
)

// verdict is by what something is about to be mounted.
type verdict struct {
	life    time.Duration // 0: it stays
	once    bool
	reviews int // before it was asked for
}

// expect notes by what something is about to be mounted.
func (g *Mounts) expect(p string, v decide.Verdict, reviews int) {
	next := verdict{reviews: reviews, once: !v.Life.Lasts()}
	switch {
	case next.once:
		next.life = onceFor
	case v.Life == decide.Until:
		next.life = max(time.Until(v.Until), 1)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next[p] = next
}

// expire takes a grant back after a while, if the answer said so. The while begins when it is mounted.
func (g *Mounts) expire(p string, after time.Duration) {
	if after > 0 {
		lapse(after, func() { _ = g.takeBack(func(q string) bool { return host.Within(q, p) }) })
	}
}

// reviewed is how often it was looked at what is to be taken back, and adds to it.
func (g *Mounts) reviewed(more int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reviews += more
	return g.reviews
}

// enter notes what is mounted. What was taken back between the verdict and the mount goes again.
func (g *Mounts) enter(p string, m mountGrant, by verdict) error {
	g.mu.Lock()
	g.grants[p] = m
	meanwhile := g.reviews != by.reviews
	g.mu.Unlock()
	if !meanwhile || by.once || g.holds(p, m) {
		return nil
	}
	return cmp.Or(g.ungraft(func(q string) bool { return q == p }), errTakenBack)
}

// ungraft takes mounts away, and then what they have covered. g.doing is held.
func (g *Mounts) ungraft(which func(string) bool) (err error) {
	var list []string
	g.mu.Lock()
	for q := range g.grants {
		if which(q) {
			list = append(list, q)
		}
	}
	g.mu.Unlock()
	slices.Sort(list)
	for _, q := range list {
		m, _ := g.grant(q)
		var uerr error
		for range m.layers { // EINVAL: it lay in a mount that has gone
			if uerr = g.agent.Ungraft(q, nil); errors.Is(uerr, unix.EINVAL) || errors.Is(uerr, unix.ENOENT) {
				uerr = nil
				break
			}
		}
		if uerr != nil {
			err = errors.Join(err, uerr)
			continue
		}
		g.mu.Lock()
		delete(g.grants, q)
		g.mu.Unlock()
		// They come into sight with it.
		for u := range g.under {
			if host.Within(u, q) && g.agent.Ungraft(u, nil) == nil {
				delete(g.under, u)
			}
		}
	}
	return err
}

func (g *Mounts) takeBack(which func(string) bool) error {
	g.doing.Lock()
	defer g.doing.Unlock()
	return g.ungraft(which)
}

// Forget takes back what was mounted at a path, above or below it: new accesses ask again.
func (g *Mounts) Forget(p string) error {
	if !g.Able() {
		return nil
	}
	g.reviewed(1)
	return g.takeBack(func(q string) bool { return host.Within(q, p) || host.Within(p, q) })
}

// review takes back what would not be given any more.
func (g *Mounts) review() {
	g.mu.Lock()
	g.reviews++
	held := make(map[string]mountGrant, len(g.grants))
	for p, m := range g.grants {
		held[p] = m
	}
	g.mu.Unlock()
	for p, m := range held {
		// A tree that may be written by now is to be mounted anew.
		if g.holds(p, m) && !(m.mode == grants.RO && m.dir && g.writable(p)) {
			continue
		}
		g.warn(g.takeBack(func(q string) bool { return p == q }))
	}
	g.reviewPlan(g.withdraw)
}

// holds says whether what was mounted would be now. A file may have been for running it only.
func (g *Mounts) holds(p string, m mountGrant) bool {
	if g.stands(p, m.mode) {
		return true
	}
	exec := decide.Ask{Op: "exec", Kind: policy.KindExec, Path: p}
	return !m.dir && g.s.Arbiter.Current(exec).Decision == decide.Allow &&
		!g.s.Arbiter.RuledOut(decide.Ask{Op: "read", Kind: policy.KindPath, Path: p})
}
