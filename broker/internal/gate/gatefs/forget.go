//go:build linux

package gatefs

import (
	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
)

// Forget is called by the kernel when it drops names from its cache.
func (s *Server) Forget(id, count uint64) {
	if n := s.nodes.Forget(id, count); n != nil && n.Type == unix.S_IFDIR {
		s.watches.leave(n)
	}
}

// pruneBatch is how many entries the kernel is asked to drop at a time.
const pruneBatch = 1024

// pruneIfFull asks the kernel to forget some files when their descriptors near the process's limit. The notices take
// directory locks that requests may hold, so they are sent from a goroutine of their own.
func (s *Server) pruneIfFull() {
	if !s.nodes.Full() || !s.pruning.TryLock() {
		return
	}
	drop := s.nodes.Holding(pruneBatch)
	go func() {
		defer s.pruning.Unlock()
		for _, e := range drop {
			if s.fuse.EntryNotify(e.Parent, e.Name) == fuse.ENOSYS {
				return
			}
		}
	}()
}
