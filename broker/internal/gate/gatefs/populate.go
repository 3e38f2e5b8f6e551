//go:build linux

package gatefs

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/served"
)

// Stop denies all open questions and those to come.
func (s *Server) Stop() {
	s.close()
}

// Populate makes a dentry for every name of every skeleton that can ask, so that their first accesses arrive as
// revalidations, which hold no lock. It is called after the native mounts and before the command starts.
func (s *Server) Populate() error {
	if s.opts.Agent == nil {
		return nil
	}
	for _, d := range s.Grants.Statics() {
		n := s.nodes.get(s.nodes.pathID(d, unix.S_IFDIR, ""))
		if !n.asks() {
			continue
		}
		if err := s.opts.Agent.Populate(d); err != nil {
			return fmt.Errorf("populating %s: %w", d, err)
		}
	}
	return nil
}

func (n *node) asks() bool {
	if n.dir.Unlisted == served.AskFirst {
		return true
	}
	for _, c := range n.dir.Children {
		if c.Kind == served.Gated {
			return true
		}
	}
	return false
}
