package prompt

import (
	"errors"
	"slices"

	"sbx.example/sbx/broker/internal/decide"
)

// errNothing is told where no answer could be taken back.
var errNothing = errors.New("there is no answer to take back")

// maxGiven bounds the answers that can be taken back.
const maxGiven = 64

// remember keeps an answer that took effect, so that it can be taken back. The lock is held.
func (q *Queue) remember(c decide.Consent) {
	if q.opt.Undo == nil {
		return
	}
	if len(q.given) == maxGiven {
		q.given = slices.Delete(q.given, 0, 1)
	}
	q.given = append(q.given, c)
	if c.Answer.By == ByTTY {
		q.last = c.About().ID
	}
}

// Last is the answer that was given last on the terminal, if it was not taken back.
func (q *Queue) Last() (decide.Consent, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.givenTo(q.last)
	if i < 0 {
		return decide.Consent{}, false
	}
	return q.given[i], true
}

func (q *Queue) givenTo(id string) int {
	return slices.IndexFunc(q.given, func(c decide.Consent) bool { return c.About().ID == id })
}

// Undo takes that answer back, and returns it. Nothing is taken back twice, and nothing before it.
func (q *Queue) Undo() (decide.Consent, error) {
	c, ok := q.Last()
	if !ok {
		return c, errNothing
	}
	return c, q.UndoAnswer(c.About().ID)
}

// UndoAnswer takes back what was answered to the question of that id.
func (q *Queue) UndoAnswer(id string) error {
	q.mu.Lock()
	i := q.givenTo(id)
	if i < 0 {
		q.mu.Unlock()
		return errNothing
	}
	c := q.given[i]
	q.given = slices.Delete(q.given, i, i+1) // before the lock is let go: nobody else takes it back as well
	q.mu.Unlock()
	err := q.opt.Undo(c)
	if err != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.given = append(q.given, c)
	}
	return err
}
