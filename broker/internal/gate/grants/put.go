//go:build linux

package grants

import "context"

// put makes a question, and what puts it, which waits for the answer. gt.mu is held.
func (gt *Gate) put(r Request) (*question, func()) {
	ctx, cancel := context.WithCancel(gt.opts.Over)
	q := &question{done: make(chan struct{}), cancel: cancel}
	key := r.key()
	gt.questions[key] = q
	return q, func() {
		defer cancel()
		a := gt.opts.Ask(ctx, r)
		gt.mu.Lock()
		var g *Grant
		open := gt.questions[key] == q // else a grant above it has settled it
		if open {
			delete(gt.questions, key)
			g = gt.carryOut(q, r, a)
		}
		gt.mu.Unlock()
		if open {
			close(q.done) // before the mount, which may need a lock that whoever waits holds
		}
		if g != nil {
			gt.mount(g)
		}
	}
}
