package gatefs

import "context"

// put makes a question, and what puts it, which waits for the answer. gt.mu is held.
func (gt *gate) put(s *Server, r Request) (*question, func()) {
	ctx, cancel := context.WithCancel(s.closed)
	q := &question{done: make(chan struct{}), cancel: cancel}
	key := r.key()
	gt.questions[key] = q
	return q, func() {
		defer cancel()
		a := s.opts.Ask(ctx, r)
		gt.mu.Lock()
		var g *grant
		open := gt.questions[key] == q // else a grant above it has settled it
		if open {
			delete(gt.questions, key)
			g = gt.settle(s, q, r, a)
		}
		gt.mu.Unlock()
		if open {
			close(q.done) // before the mount, which may need a lock that whoever waits holds
		}
		if g != nil {
			gt.mount(s, g)
		}
	}
}
