//go:build linux

package gatefs

import (
	"fmt"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
)

// Withdraw takes back what was mounted before the server started: from then on it asks. Of a directory's names those
// that hidden knows do not exist.
func (s *Server) Withdraw(p string, hidden func(path string) bool) error {
	s.Grants.Unplan(p)
	if err := s.uncover(p, hidden); err != nil {
		return err
	}
	return s.Grants.Revoke(p)
}

// uncover makes a directory that only held a mount one whose names ask. The kernel knows it by the same number before
// and after.
func (s *Server) uncover(p string, hidden func(path string) bool) error {
	t := &s.nodes
	old := t.Get(t.PathID(p, unix.S_IFDIR, ""))
	if old == nil || old.Kind != nodes.Static || !old.Dir.Place {
		return nil
	}
	d := *old.Dir
	d.Place, d.Unlisted = false, served.AskFirst
	n := &nodes.Node{ID: old.ID, Kind: nodes.Static, Type: old.Type, Path: old.Path, FD: -1, Dir: &d}
	if err := s.openStatic(n); err != nil {
		return fmt.Errorf("withdrawing %s: %w", p, err)
	}
	d.Children = make(map[string]served.Child, len(old.Dir.Children))
	for name, c := range old.Dir.Children {
		d.Children[name] = c
	}
	for _, e := range s.addUnlisted(n, nil, func(string) bool { return true }) {
		if hidden(p + "/" + e.Name) {
			d.Children[e.Name] = served.Child{Name: e.Name, Kind: served.Hidden}
		}
	}
	t.Replace(n)
	return nil
}

// noticePatience is how long a notice is waited for that makes the kernel forget what was granted.
const noticePatience = 100 * time.Millisecond

// forget makes the kernel forget a name that was granted. Who makes something in the name's directory and waits for an
// answer holds that up. Nothing else that is taken back may wait for him: what is opened asks in any case.
func (s *Server) forget(p string) error {
	parent := s.nodes.PathID(path.Dir(p), unix.S_IFDIR, "")
	told := make(chan fuse.Status, 1)
	go func() { told <- s.fuse.EntryNotify(parent, path.Base(p)) }()
	select {
	case code := <-told:
		if code != fuse.OK && code != fuse.ENOENT {
			return fmt.Errorf("making the kernel forget %s: %v", p, code)
		}
	case <-time.After(noticePatience):
	}
	return nil
}
