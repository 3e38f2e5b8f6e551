//go:build linux

package gatefs

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
)

// pruneBatch is how many entries the kernel is asked to drop at a time.
const pruneBatch = 1024

func (s *Server) full() bool {
	s.nodes.mu.RLock()
	defer s.nodes.mu.RUnlock()
	return s.nodes.held > s.nofile
}

// pruneIfFull asks the kernel to forget some files when their descriptors near the process's limit. The notices take
// directory locks that requests may hold, so they are sent from a goroutine of their own.
func (s *Server) pruneIfFull() {
	if !s.full() || !s.pruning.TryLock() {
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
