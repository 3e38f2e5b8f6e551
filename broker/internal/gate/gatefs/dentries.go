//go:build linux

package gatefs

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
)

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

// pruneBatch is how many entries the kernel is asked to drop at a time.
const pruneBatch = 1024

// pruneIfFull asks the kernel to forget some files when their descriptors near the process's limit. The notices take
// directory locks that requests may hold, so they are sent from a goroutine of their own.
func (s *Server) pruneIfFull() {
	s.nodes.mu.RLock()
	full := s.nodes.held > s.nofile
	s.nodes.mu.RUnlock()
	if !full || !s.pruning.TryLock() {
		return
	}
	type entry struct {
		parent uint64
		name   string
	}
	var drop []entry
	s.nodes.mu.RLock()
	for _, n := range s.nodes.byKey {
		if n.typ != unix.S_IFDIR && n.parent != nil && n.fd >= 0 {
			drop = append(drop, entry{n.parent.id, n.name})
		}
		if len(drop) == pruneBatch {
			break
		}
	}
	s.nodes.mu.RUnlock()
	go func() {
		defer s.pruning.Unlock()
		for _, e := range drop {
			if s.fuse.EntryNotify(e.parent, e.name) == fuse.ENOSYS {
				return
			}
		}
	}()
}
