//go:build linux

package gatefs

import (
	"sync"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/locks"
)

// handle is an open file or directory.
type handle struct {
	fd     int // -1 for a skeleton directory
	node   *node
	append bool
	runs   bool // opened by execve
	maybe  bool // written to under a name of a secret, and perhaps none: see Server.written

	mu    sync.Mutex // directories: one reader at a time moves the host offset
	names []fuse.DirEntry

	locks locks.File
}

// handles gives out numbers that the kernel brings back; they are never reused, so a late request cannot hit a later
// file.
type handles struct {
	mu   sync.RWMutex
	open map[uint64]*handle
	next uint64
}

func (t *handles) init() { t.open = make(map[uint64]*handle) }

func (t *handles) add(h *handle) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	t.open[t.next] = h
	return t.next
}

// any says whether is does so of a handle of the object.
func (t *handles) any(n *node, is func(h *handle) bool) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, h := range t.open {
		if h.node == n && is(h) {
			return true
		}
	}
	return false
}

// runs reports whether somebody runs the file.
func (t *handles) runs(n *node) bool { return t.any(n, func(h *handle) bool { return h.runs }) }

// dup is a descriptor of its own for an object that somebody has open, or -1.
func (t *handles) dup(n *node) int {
	fd := -1
	t.any(n, func(h *handle) bool {
		fd, _ = unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0)
		return fd >= 0
	})
	return fd
}

func (t *handles) get(fh uint64) *handle {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.open[fh]
}

// file is the handle's descriptor, or -1 if there is none.
func (t *handles) file(fh uint64) int {
	if h := t.get(fh); h != nil {
		return h.fd
	}
	return -1
}

func (t *handles) drop(fh uint64) {
	t.mu.Lock()
	h := t.open[fh]
	delete(t.open, fh)
	t.mu.Unlock()
	if h != nil && h.fd >= 0 {
		unix.Close(h.fd)
	}
}

func (t *handles) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for fh, h := range t.open {
		if h.fd >= 0 {
			unix.Close(h.fd)
		}
		delete(t.open, fh)
	}
}

// Release ends a file handle.
func (s *Server) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	if h := s.files.get(in.Fh); h != nil {
		if h.maybe {
			s.written(h)
		}
		s.locks.Leave(&h.locks)
		if h.fd >= 0 && in.Flags&unix.O_ACCMODE != unix.O_RDONLY {
			defer s.expectAt(h.node, unix.IN_CLOSE_WRITE)()
		}
	}
	s.files.drop(in.Fh)
}

// ReleaseDir ends a directory handle.
func (s *Server) ReleaseDir(in *fuse.ReleaseIn) { s.files.drop(in.Fh) }
