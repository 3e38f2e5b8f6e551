//go:build linux

package gatefs

import "golang.org/x/sys/unix"

// What this server does on the host for somebody inside, the host reports as well. The kernel has told those who watch
// inside already.

// expect is called before something is done to a name, and what it returns afterwards.
func (s *Server) expect(n *node, name string, masks ...uint32) func() {
	if s.opts.Repeat == nil || n == nil {
		return func() {}
	}
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[n] == nil {
		return func() {}
	}
	w.own.Begin(n, name, masks)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		last := w.reported()
		w.own.End(n, name, masks, last)
		if last == w.followed {
			w.own.Forget()
		}
	}
}

// reported is how much the host has reported so far, with what was not read yet. w.mu is held.
func (w *watches) reported() uint64 {
	unread, err := unix.IoctlGetInt(w.fd, unix.TIOCINQ)
	if err != nil { // it is over
		return w.read
	}
	return w.read + uint64(unread)
}

// expectAt is expect for an object, by the name it was last seen with.
func (s *Server) expectAt(c *node, masks ...uint32) func() {
	s.nodes.mu.RLock()
	parent, name := c.parent, c.name
	s.nodes.mu.RUnlock()
	return s.expect(parent, name, masks...)
}
