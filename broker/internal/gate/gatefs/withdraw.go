package gatefs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Withdraw takes back what was mounted before the server started: from then on it asks. Of a directory's names those
// that hidden knows do not exist.
func (s *Server) Withdraw(p string, hidden func(path string) bool) error {
	s.gate.mu.Lock()
	g := s.gate.grants[p]
	if g == nil {
		g = &grant{path: p, ready: make(chan struct{})}
		close(g.ready)
		s.gate.grants[p] = g
	}
	g.planned = false
	s.gate.mu.Unlock()
	if err := s.uncover(p, hidden); err != nil {
		return err
	}
	return s.Revoke(p)
}

// uncover makes a directory that only held a mount one whose names ask. The kernel knows it by the same number before
// and after.
func (s *Server) uncover(p string, hidden func(path string) bool) error {
	t := &s.nodes
	old := t.get(t.pathID(p, unix.S_IFDIR, ""))
	if old == nil || old.kind != static || !old.dir.Place {
		return nil
	}
	d := *old.dir
	d.Place, d.Unlisted = false, AskFirst
	n := &node{id: old.id, kind: static, typ: old.typ, path: old.path, fd: -1, dir: &d}
	if err := s.openStatic(n); err != nil {
		return fmt.Errorf("withdrawing %s: %w", p, err)
	}
	d.children = make(map[string]Child, len(old.dir.children))
	for name, c := range old.dir.children {
		d.children[name] = c
	}
	for _, e := range s.addUnlisted(n, nil, false) {
		if hidden(p + "/" + e.Name) {
			d.children[e.Name] = Child{Name: e.Name, Kind: Hidden}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n.looks = t.byID[n.id].looks
	t.byID[n.id] = n
	return nil
}
