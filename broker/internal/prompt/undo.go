package prompt

import (
	"errors"

	"sbx.example/sbx/broker/internal/decide"
)

// errNothing is told where no answer could be taken back.
var errNothing = errors.New("there is no answer to take back")

// Last is the answer that was given last on the terminal, if it was not taken back.
func (q *Queue) Last() (decide.Consent, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last == nil || q.opt.Undo == nil {
		return decide.Consent{}, false
	}
	return *q.last, true
}

// Undo takes that answer back, and returns it. Nothing is taken back twice, and nothing before it.
func (q *Queue) Undo() (decide.Consent, error) {
	c, ok := q.Last()
	if !ok {
		return c, errNothing
	}
	if err := q.opt.Undo(c); err != nil {
		return c, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = nil
	return c, nil
}
