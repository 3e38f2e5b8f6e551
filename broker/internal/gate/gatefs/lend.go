//go:build linux

package gatefs

import (
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/guard"
)

// Lend says that the file behind a descriptor is about to be given away, and whether it may be: not while somebody
// runs it.
func (s *Server) Lend(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	id := guard.ID{Dev: st.Dev, Ino: st.Ino}
	n := s.nodes.Find(nodes.Key{ID: id})
	if n != nil && s.files.runs(n) {
		return false
	}
	s.lent.Add(id)
	if n != nil && !n.Lent.Swap(true) {
		n.Relied.Store(false)
		s.fuse.PagesNotify(n.ID)
	}
	return true
}

// Still keeps every directory where it is until the function that it returns is called.
func (s *Server) Still() func() {
	s.judging.RLock()
	return s.judging.RUnlock
}

// stays says whether a directory is where the server knows it to be: somebody may have moved it, or one above.
func (s *Server) stays(n *nodes.Node) bool {
	top, rel := s.nodes.Below(n)
	return n == top || names.Stays(s.procfd, n.FD, top.FD, rel, top.Zone, n.Zone)
}

// maxAlone bounds how long Alone waits: whoever judges a name may wait for a file system that does not answer.
const maxAlone = 2 * time.Second

// Alone has nobody else judge and make, move or remove a name until the function that it returns is called; until then
// the kernel must not be waited for, since who makes a name holds its locks. It returns nil where that takes too long.
func (s *Server) Alone() func() {
	for end := time.Now().Add(maxAlone); !s.judging.TryLock(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			return nil
		}
	}
	return s.judging.Unlock
}

// Left makes the kernel forget a name in a directory of the host, which leads elsewhere now. What is mounted on it is
// mounted no more then.
func (s *Server) Left(id guard.ID, name string) {
	for _, n := range s.nodes.Directories(id) {
		s.unmounted(path.Join(s.nodes.Where(n), name))
		s.fuse.InodeNotify(n.ID)
		s.fuse.EntryNotify(n.ID, name)
	}
}

// markLent marks a file that was looked up.
func (s *Server) markLent(n *nodes.Node) {
	if n.Type == unix.S_IFREG && !n.Lent.Load() && s.lent.Has(guard.ID{Dev: n.Key.Dev, Ino: n.Key.Ino}) {
		n.Lent.Store(true)
	}
}
