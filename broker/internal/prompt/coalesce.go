package prompt

import (
	"slices"

	"sbx.example/sbx/broker/internal/decide"
)

const (
	// maxTogether is how many objects one question is about, at most: all of them are shown with it.
	maxTogether = 8
	// maxNames is how many bytes their names have together.
	maxNames = 8000
)

// place makes a new question: about the object, or about it and others of its directory that wait for the same, where
// there are many of them. A question is never widened: the new one has another id and another text, and the old ones
// are gone. Nil means that the budget is used up.
func (q *Queue) place(in Question) *entry {
	siblings := q.siblings(&in)
	if len(siblings) >= q.opt.CoalesceAfter || len(siblings) > 0 && siblings[0].q.Many() {
		return q.join(in, siblings)
	}
	if q.take() {
		return &entry{q: in, subject: in.Subject(), paid: 1}
	}
	if len(siblings) > 0 {
		return q.join(in, siblings)
	}
	return nil
}

// siblings are the open questions that in can become one with: those that have room, one that is about several first.
func (q *Queue) siblings(in *Question) []*entry {
	group, room, size := in.Group(), maxTogether-1, maxNames-len(in.Path)
	if group == "" {
		return nil
	}
	var out []*entry
	for _, many := range []bool{true, false} {
		for _, e := range q.open {
			if e.q.Many() != many || e.q.Group() != group {
				continue
			}
			n, bytes := len(e.q.Objects()), 0
			for _, o := range e.q.Objects() {
				bytes += len(o.Path)
			}
			if n <= room && bytes <= size {
				out = append(out, e)
				room, size = room-n, size-bytes
			}
		}
	}
	return out
}

// join replaces open questions and a new one by one about exactly the objects of all. Those who wait for them
// wait for that one.
func (q *Queue) join(in Question, siblings []*entry) *entry {
	list := []Question{}
	for _, s := range siblings {
		list = append(list, s.q)
	}
	e := &entry{q: decide.Join(append(list, in))}
	e.subject = e.q.Subject()
	for _, s := range siblings {
		q.remove(s)
		e.paid += s.paid
		for _, w := range s.waiters {
			w.entry = e
		}
		e.waiters = slices.Concat(e.waiters, s.waiters)
		q.emit(Event{Kind: Gone, Question: s.q})
	}
	return e
}
