package gatefs

import "golang.org/x/sys/unix"

// What this server does on the host for somebody inside, the host reports as well. The kernel has told those who watch
// inside already.

// ownEvent is one kind of event of one name.
type ownEvent struct {
	dir  *node
	name string
	mask uint32
}

// ownEvents are those that are expected. Not all of them come: equal ones are reported once, and not every call changes
// all that it may.
type ownEvents struct {
	left, doing int
	last        uint64 // where in all that is reported the last of them may be, once nothing is being done
}

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
	for _, m := range masks {
		k := ownEvent{n, name, m}
		if w.own[k] == nil {
			w.own[k] = &ownEvents{}
		}
		w.own[k].left++
		w.own[k].doing++
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		last := w.reported()
		for _, m := range masks {
			if o := w.own[ownEvent{n, name, m}]; o != nil {
				o.doing, o.last = o.doing-1, last
			}
		}
		if last == w.followed {
			w.forgetOwn()
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

// isOwn says whether an event was expected. w.mu is held.
func (w *watches) isOwn(n *node, e event) bool {
	o := w.own[ownEvent{n, e.name, e.mask &^ unix.IN_ISDIR}]
	if o == nil || o.left == 0 || o.doing == 0 && o.last < e.at {
		return false
	}
	o.left--
	return true
}

// forgetOwn forgets what is done, where all that was reported has been followed. w.mu is held.
func (w *watches) forgetOwn() {
	for k, o := range w.own {
		if o.doing == 0 {
			delete(w.own, k)
		}
	}
}
