package prompt

import (
	"slices"
	"sync"
	"time"
)

// showing is a question that the terminal shows.
type showing struct {
	id    string
	erase chan struct{} // closed when there is an answer: it is to be taken away
	gone  chan struct{} // closed when it was
	once  sync.Once
}

// erased says that it was taken away.
func (s *showing) erased() { s.once.Do(func() { close(s.gone) }) }

// show notes that the terminal shows a question; nil: that is not open any more.
func (q *Queue) show(id string) *showing {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !slices.ContainsFunc(q.open, func(e *entry) bool { return e.q.ID == id }) {
		return nil
	}
	q.shown = &showing{id: id, erase: make(chan struct{}), gone: make(chan struct{})}
	return q.shown
}

// eraseTime bounds how long an answer waits until the terminal has let go of its question, on a busy host too: one at
// the end of a connection that hangs takes nothing any more. No second answer waits for it, as it shows no second
// question.
const eraseTime = time.Second

// erase has the terminal take a question away before its answer lets anybody go on, who may write there at once. The
// queue is locked. The terminal needs it only where somebody takes an answer back at this moment, and goes on after
// eraseTime then.
func (q *Queue) erase(id string) {
	s := q.shown
	if s == nil || s.id != id {
		return
	}
	q.shown = nil
	close(s.erase)
	select {
	case <-s.gone:
	case <-time.After(eraseTime):
	}
}
