//go:build linux

package gate

import (
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// A program that saves a file atomically makes a temporary name beside it and moves that onto the file. Where the file
// may be written, such a name may be made; what was made there is the session's, and the host's own is not.

// Temporary says whether what the session made at a path may be used and moved without a question.
func (g *Grounds) Temporary(p string) bool {
	v := g.s.Arbiter.Current(decide.Ask{Op: "write", Kind: policy.KindPath, Path: p,
		Of: request.Originals(g.s.In, p, false)})
	return v.Decision == decide.Allow
}

// release has those files that may be written no longer be mounts: one is about to be replaced. What the plan shows in
// the place of one, as a copy without a token, stays.
func (g *Grounds) release(files []string, take func(string) error) {
	for _, f := range files {
		covered := false
		for i := range g.plan.Mounts { // the last one is what is seen
			if m := &g.plan.Mounts[i]; g.plan.OnHost(m.Target) == f {
				covered = !request.Itself(g.plan, m)
			}
		}
		if !covered && g.s.Arbiter.Current(decide.Ask{Op: "write", Kind: policy.KindPath, Path: f}).Decision == decide.Allow {
			g.warn(take(f))
		}
	}
}

// originals are the files that a name is a temporary one of, where it is free or the session's own.
func (g *Mounts) originals(a notify.Ask) []string {
	if a.New == 0 && !a.Ours {
		return nil
	}
	return request.Originals(g.s.In, a.Path, a.New == unix.S_IFDIR)
}

// releaseFor is release for what is to be made.
func (g *Mounts) releaseFor(q decide.Ask, a notify.Ask) {
	if a.New != 0 {
		g.release(q.Of, g.releasePlanned)
	}
}

// releasePlanned is what release does to a file that the plan mounts. What answers have mounted goes with the move.
func (g *Mounts) releasePlanned(p string) error {
	if !slices.ContainsFunc(g.plan.Mounts, func(m plan.Mount) bool { return m.Kind == plan.Bind && m.Target == p }) {
		return nil
	}
	return g.withdraw(p)
}

// withdraw takes away what the plan mounts at a path: from then on it asks.
func (g *Mounts) withdraw(p string) error {
	g.doing.Lock()
	defer g.doing.Unlock()
	g.mu.Lock()
	gone := g.gone[p]
	g.placed.Store(true)
	g.gone[p] = true
	g.mu.Unlock()
	if gone {
		return nil
	}
	return g.agent.Ungraft(p, nil)
}
