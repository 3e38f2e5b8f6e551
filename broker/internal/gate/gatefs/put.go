package gatefs

import (
	"context"
	"iter"

	"golang.org/x/sys/unix"
	"sbx/broker/internal/decide"
)

// put makes a question, and what puts it. gt.mu is held.
func (gt *gate) put(s *Server, r Request) (*question, func(park func())) {
	ctx, cancel := context.WithCancel(s.closed)
	q := &question{done: make(chan struct{}), cancel: cancel}
	key := r.key()
	gt.questions[key] = q
	return q, func(park func()) {
		defer cancel()
		beside := false
		q.after.OnPark(func() { beside = true; park() })
		a := s.opts.Ask(decide.WithAfter(ctx, &q.after), r)
		gt.mu.Lock()
		var g *grant
		open := gt.questions[key] == q // else a grant above it has settled it
		unheard := q.waiters == 0
		q.heard = true
		if open {
			delete(gt.questions, key)
			g = gt.settle(s, q, r, a)
		}
		served := g != nil && g.typ == unix.S_IFREG && s.opts.ServeFiles
		gt.mu.Unlock()
		if open {
			close(q.done) // before the mount, which may need a lock that whoever waits holds
		}
		switch {
		case g == nil:
		case !r.fresh && (beside || served): // in this goroutine: what is served is there before anybody else runs
			gt.mount(s, g)
		default:
			go gt.mount(s, g)
		}
		if unheard {
			q.after.Run()
		}
	}
}

// putter is a goroutine that puts questions. It runs in the place of whoever calls it until it has to wait, so
// that an answer which is
// there at once wakes no thread.
type putter struct {
	step func() (done, ok bool)
	put  func(park func())
}

func newPutter() *putter {
	a := new(putter)
	a.step, _ = iter.Pull(func(yield func(done bool) bool) {
		for {
			a.put(func() { yield(false) })
			a.put = nil
			if !yield(true) {
				return
			}
		}
	})
	return a
}

// maxPutters is how many goroutines wait for another question.
const maxPutters = 4

// begin puts a question. It returns when that is answered, or when the answer has to be waited for.
func (gt *gate) begin(put func(park func())) {
	a := gt.rested()
	a.put = put
	defer func() {
		if p := recover(); p != nil {
			go panic(p) // as in a goroutine of its own: whoever waits for the answer must not wait for ever
		}
	}()
	if done, _ := a.step(); done {
		gt.rest(a)
		return
	}
	go func() {
		a.step()
		gt.rest(a)
	}()
}

func (gt *gate) rested() *putter {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if n := len(gt.putters); n > 0 {
		a := gt.putters[n-1]
		gt.putters = gt.putters[:n-1]
		return a
	}
	return newPutter()
}

func (gt *gate) rest(a *putter) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if len(gt.putters) < maxPutters {
		gt.putters = append(gt.putters, a)
	}
}
