//go:build linux

package gatefs

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/locks"
)

// lockHost is the host's file behind a handle, for locks.
type lockHost struct {
	s *Server
	h *handle
}

func (l lockHost) Open(flags int) (int, error) { return l.s.reopen(l.h.fd, flags) }

// Closing: nobody inside closes a file when a lock is given back.
func (l lockHost) Closing() func() { return l.s.expectAt(l.h.node, unix.IN_CLOSE_WRITE) }

// GetLk says which lock would be in the way.
func (s *Server) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) (code fuse.Status) {
	h := s.files.Get(in.Fh)
	if h == nil || h.fd < 0 {
		return fuse.EBADF
	}
	out.Lock, code = s.locks.Get(locks.Owner{Object: h.node.ID, ID: in.Owner}, lockHost{s, h}, in.Lock)
	return code
}

// SetLk takes a lock or gives it back.
func (s *Server) SetLk(cancel <-chan struct{}, in *fuse.LkIn, wait bool) fuse.Status {
	h := s.files.Get(in.Fh)
	if h == nil || h.fd < 0 {
		return fuse.EBADF
	}
	o := locks.Owner{Object: h.node.ID, ID: in.Owner, Flock: in.Flags&fuse.LK_FLOCK != 0}
	code := s.locks.Set(cancel, o, &h.locks, lockHost{s, h}, in.Lock, wait)
	if code == fuse.OK && in.Lock.Type != unix.F_UNLCK { // what was read before may have been changed by who had the lock
		s.fuse.PagesNotify(h.node.ID)
	}
	return code
}
