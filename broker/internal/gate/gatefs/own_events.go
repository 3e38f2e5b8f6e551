package gatefs

import (
	"time"

	"golang.org/x/sys/unix"
)

// What this server does on the host for somebody inside, the host reports as well. The kernel has told those who watch
// inside already.

// ownEvent is one kind of event of one name.
type ownEvent struct {
	dir  *node
	name string
	mask uint32
}

// ownEvents are those that are expected.
type ownEvents struct {
	left, doing int
	done        time.Time // when the last was
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
		for _, m := range masks {
			if o := w.own[ownEvent{n, name, m}]; o != nil {
				o.doing, o.done = o.doing-1, time.Now()
			}
		}
	}
}

// expectAt is expect for an object, by the name it was last seen with.
func (s *Server) expectAt(c *node, masks ...uint32) func() {
	s.nodes.mu.RLock()
	parent, name := c.parent, c.name
	s.nodes.mu.RUnlock()
	return s.expect(parent, name, masks...)
}

// isOwn says whether an event was expected. w.mu is held.
func (w *watches) isOwn(n *node, name string, mask uint32) bool {
	o := w.own[ownEvent{n, name, mask &^ unix.IN_ISDIR}]
	if o == nil || o.left == 0 {
		return false
	}
	o.left--
	return true
}

// forgetOwn forgets what was done before all that the host had to report was read: equal events are reported once.
func (w *watches) forgetOwn(before time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, o := range w.own {
		if o.doing == 0 && o.done.Before(before) {
			delete(w.own, k)
		}
	}
}
