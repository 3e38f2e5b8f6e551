//go:build linux

package gatefs

import (
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// lent are the files that somebody inside was given to read and write as the host's own: what is done to them the
// kernel does not see as done through this file system, so it asks each time. It is never taken back, because nobody
// tells when such a file is closed.
type lent struct {
	mu  sync.RWMutex
	ids map[identity]bool
	all bool // there are so many that all files are taken for lent
}

// identity is which object of the host something is.
type identity struct{ dev, ino uint64 }

// maxLent bounds them.
const maxLent = 1 << 16

// Lend says that the file behind a descriptor is about to be given away, and whether it may be: not while somebody
// runs it.
func (s *Server) Lend(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	s.nodes.mu.RLock()
	n := s.nodes.byKey[loopKey{ID: guard.ID{Dev: st.Dev, Ino: st.Ino}}]
	s.nodes.mu.RUnlock()
	if n != nil && s.files.runs(n) {
		return false
	}
	l := &s.lent
	l.mu.Lock()
	if l.ids == nil {
		l.ids = make(map[identity]bool)
	}
	if l.all = l.all || len(l.ids) >= maxLent; !l.all {
		l.ids[identity{st.Dev, st.Ino}] = true
	}
	l.mu.Unlock()
	if n != nil && !n.lent.Swap(true) {
		n.relied.Store(false)
		s.fuse.PagesNotify(n.id)
	}
	return true
}

// Still keeps every directory where it is until the function that it returns is called.
func (s *Server) Still() func() {
	s.judging.RLock()
	return s.judging.RUnlock
}

// Left makes the kernel forget a name in a directory of the host, which leads elsewhere now. What is mounted on it is
// mounted no more then.
func (s *Server) Left(dir int, name string) {
	id, err := names.ID(dir)
	if err != nil {
		return
	}
	var in []*node
	s.nodes.mu.RLock()
	for _, n := range s.nodes.byID {
		if n.zone == nil || n.fd < 0 {
			continue
		}
		if own, err := names.ID(n.fd); err == nil && own == id {
			in = append(in, n)
		}
	}
	s.nodes.mu.RUnlock()
	for _, n := range in {
		s.unmounted(path.Join(s.nodes.where(n), name))
		s.fuse.InodeNotify(n.id)
		s.fuse.EntryNotify(n.id, name)
	}
}

// markLent marks a file that was looked up.
func (s *Server) markLent(n *node) {
	if n.typ != unix.S_IFREG || n.lent.Load() {
		return
	}
	s.lent.mu.RLock()
	defer s.lent.mu.RUnlock()
	if s.lent.all || s.lent.ids[identity{n.key.Dev, n.key.Ino}] {
		n.lent.Store(true)
	}
}
