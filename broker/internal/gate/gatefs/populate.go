//go:build linux

package gatefs

import (
	"fmt"

	"golang.org/x/sys/unix"
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
		if !n.dir.MayAsk() {
			continue
		}
		if err := s.opts.Agent.Populate(d); err != nil {
			return fmt.Errorf("populating %s: %w", d, err)
		}
	}
	return nil
}
