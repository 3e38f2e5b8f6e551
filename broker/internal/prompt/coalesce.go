package prompt

import (
	"path"
	"slices"
	"strings"
	"time"
)

// burst counts the questions in one directory.
type burst struct {
	since time.Time
	n     int
}

// asDir returns the question about the directory that in would become part of; nil if there is none.
func (q *Question) asDir() *Question {
	if q.Host != "" || q.Many || !strings.HasPrefix(q.Path, "/") {
		return nil
	}
	d := *q
	d.Path, d.Target, d.Dir, d.Many = path.Dir(q.Path), "", true, true
	return &d
}

// tooBroad: nobody should be led to grant the root, a top directory or a home by one key.
func (q *Queue) tooBroad(dir string) bool {
	return strings.Count(dir, "/") < 2 || dir == q.opt.Home || strings.HasPrefix(q.opt.Home, dir+"/")
}

// place makes a new question: about the object, or about its directory when that was asked about too
// often. Nil means that the budget is used up.
func (q *Queue) place(in Question) *entry {
	d := in.asDir()
	if d != nil && q.tooBroad(d.Path) {
		d = nil
	}
	var siblings []*entry
	if d != nil {
		for _, e := range q.open {
			if s := e.q.asDir(); s != nil && s.subject() == d.subject() && e.q.Why == in.Why {
				siblings = append(siblings, e)
			}
		}
		if q.often(d) {
			return q.fold(*d, siblings)
		}
	}
	if q.take() {
		return &entry{q: in, subject: in.subject(), paid: 1}
	}
	if len(siblings) > 0 {
		return q.fold(*d, siblings)
	}
	return nil
}

// often counts a question about a name in d.
func (q *Queue) often(d *Question) bool {
	now := time.Now()
	key := d.subject() + d.Why
	b := q.recent[key]
	if b == nil || now.Sub(b.since) > q.opt.Window {
		if len(q.recent) >= maxRecent {
			clear(q.recent)
		}
		b = &burst{since: now}
		q.recent[key] = b
	}
	b.n++
	return b.n > q.opt.CoalesceAfter
}

// fold replaces the open questions about names in a directory by one about the directory. Those who
// wait for them wait for the new one.
func (q *Queue) fold(d Question, siblings []*entry) *entry {
	e := &entry{q: d, subject: d.subject()}
	if len(siblings) == 0 {
		if !q.take() {
			return nil
		}
		e.paid = 1
	}
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
