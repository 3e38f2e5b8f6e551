//go:build linux

package gate

import (
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
)

// The kernel neither removes nor moves what something is mounted on. So what an answer has mounted on a name is taken
// away before a program does that to the name.

// Unmounting returns what takes away the mounts of answers at a path and below it, nil where there are none.
func (g *Files) Unmounting(p string) func() {
	if !g.Able() || !g.server.Grants.Mounted(p) {
		return nil
	}
	return func() { g.warn(g.server.Grants.Unmount(p)) }
}

// Mounted says whether an answer has mounted something at a path or below it.
func (g *Mounts) Mounted(p string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for q := range g.grants {
		if host.Within(q, p) {
			return true
		}
	}
	return false
}

// Unmount takes that away. The answers stand, and the next access mounts again what is still there.
func (g *Mounts) Unmount(p string) error {
	return g.takeBack(func(q string) bool { return host.Within(q, p) })
}

// Moves says whether a directory may go from one name to another with all that is in it: both are granted for writing
// with what lies below, and nothing there is hidden, guarded or somebody else's.
func (g *Grounds) Moves(from, to string) bool {
	for _, p := range [...]string{from, to} {
		v := g.s.Arbiter.Current(decide.Ask{Op: "write", Kind: policy.KindPath, Path: p, Flags: []string{"dir"}})
		if v.Decision != decide.Allow || !v.Whole || !g.s.View.Whole(p) || !g.mayWrite(p, false) || g.guardsWrite(p) != "" {
			return false
		}
	}
	return !g.foreign().Below(from) && g.guardedIn(from) == nil
}
