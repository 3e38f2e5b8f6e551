//go:build linux

package gatefs

import (
	"sync"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/locks"
	"sbx.example/sbx/broker/internal/gate/nodes"
)

// handle is an open file or directory.
type handle struct {
	fd     int // -1 for a skeleton directory
	node   *nodes.Node
	append bool
	runs   bool // opened by execve
	maybe  bool // written to under a name of a secret, and perhaps none: see Server.written

	mu    sync.Mutex // directories: one reader at a time moves the host offset
	names []fuse.DirEntry

	locks locks.File
}

func (h *handle) close() {
	if h != nil && h.fd >= 0 {
		unix.Close(h.fd)
	}
}

type handles struct{ fuse.Handles[*handle] }

// runs reports whether somebody runs the file.
func (t *handles) runs(n *nodes.Node) bool {
	return t.Any(func(h *handle) bool { return h.node == n && h.runs })
}

// dup is a descriptor of its own for an object that somebody has open, or -1.
func (t *handles) dup(n *nodes.Node) int {
	fd := -1
	t.Any(func(h *handle) bool {
		if h.node == n {
			fd, _ = unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0)
		}
		return fd >= 0
	})
	return fd
}

// file is the handle's descriptor, or -1 if there is none.
func (t *handles) file(fh uint64) int {
	if h := t.Get(fh); h != nil {
		return h.fd
	}
	return -1
}

// Release ends a file handle.
func (s *Server) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	if h := s.files.Get(in.Fh); h != nil {
		if h.maybe {
			s.written(h)
		}
		s.locks.Leave(&h.locks)
		if h.fd >= 0 && in.Flags&unix.O_ACCMODE != unix.O_RDONLY {
			defer s.expectAt(h.node, unix.IN_CLOSE_WRITE)()
		}
	}
	s.files.Drop(in.Fh).close()
}

// ReleaseDir ends a directory handle.
func (s *Server) ReleaseDir(in *fuse.ReleaseIn) { s.files.Drop(in.Fh).close() }
