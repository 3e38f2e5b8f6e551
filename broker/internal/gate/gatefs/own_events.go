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
	if w.of[n] == nil && !w.own.Has(n, name, masks) {
		return func() {}
	}
	w.own.Begin(n, name, masks)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.own.End(w.fd, n, name, masks)
	}
}

// expectAt is expect for an object, by the name it has once it is expected.
func (s *Server) expectAt(c *node, masks ...uint32) func() {
	for {
		parent, name := s.nodes.nameOf(c)
		end := s.expect(parent, name, masks...)
		if p, n := s.nodes.nameOf(c); p == parent && n == name {
			return end
		}
		end()
	}
}

// renamed are events of a file that come with the name it has by then. The kernel releases a file after close(2) has
// returned, and so perhaps while the file is renamed.
var renamed = [...]uint32{unix.IN_CLOSE_WRITE, unix.IN_MODIFY, unix.IN_ATTRIB}

// expectRename is expect for both names of a rename.
func (s *Server) expectRename(od *node, oldName string, nd *node, newName string) func() {
	w := &s.watches
	w.mu.Lock()
	same := s.opts.Repeat != nil && (w.of[od] != nil || w.of[nd] != nil)
	if same {
		w.own.Same(od, oldName, nd, newName, renamed[:])
	}
	w.mu.Unlock()
	from := s.expect(od, oldName, unix.IN_MOVED_FROM, unix.IN_MOVED_TO, unix.IN_DELETE)
	to := s.expect(nd, newName, unix.IN_MOVED_TO, unix.IN_MOVED_FROM, unix.IN_CREATE, unix.IN_ATTRIB)
	return func() {
		from()
		to()
		if w.mu.Lock(); same {
			w.own.End(w.fd, od, oldName, renamed[:])
		}
		w.mu.Unlock()
	}
}
