//go:build linux

package grants

import "context"

// newQuestion makes a question, and what puts it, which waits for the answer. gt.mu is held.
func (gt *Gate) newQuestion(r Request) (*question, func()) {
	ctx, cancel := context.WithCancel(gt.opts.Over)
	q := &question{done: make(chan struct{}), cancel: cancel}
	key := r.key()
	gt.questions[key] = q
	return q, func() {
		defer cancel()
		a := gt.ask(ctx, r)
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

// ask returns with an answer that stands, and with gt.mu held. What was taken back between a verdict and its mount
// would be mounted otherwise.
func (gt *Gate) ask(ctx context.Context, r Request) Answer {
	for {
		gt.mu.Lock()
		reviews := gt.reviews
		gt.mu.Unlock()
		a := gt.opts.Ask(ctx, r)
		gt.mu.Lock()
		if !a.Allow || a.Once || gt.reviews == reviews {
			return a
		}
		gt.mu.Unlock()
	}
}
