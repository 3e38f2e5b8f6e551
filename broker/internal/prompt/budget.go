package prompt

import (
	"fmt"
	"time"
)

// budget is a token bucket for new questions, and the count of those that were refused since. A question that somebody
// answers gives its token back: what is bounded is what a program asks of people who do not keep up, not what an
// approver settles at once.
type budget struct {
	tokens  float64
	last    time.Time
	refused int
}

func (q *Queue) take() bool {
	now := time.Now()
	b := &q.budget
	b.tokens = min(float64(q.opt.Burst), b.tokens+float64(now.Sub(b.last))/float64(refillEvery))
	b.last = now
	if len(q.open) >= q.opt.MaxOpen || b.tokens < 1 {
		return false
	}
	b.tokens--
	if b.refused > 0 {
		n := b.refused
		b.refused = 0
		q.emit(Event{Kind: Notice, Text: fmt.Sprintf("asking again: %d accesses were denied without a question", n)})
	}
	return true
}

// repay is called when a question ends. One that nobody answered, because its program left or the time was up, has cost
// its token.
func (q *Queue) repay(e *entry, a Answer) {
	if IsMeant(a.By) {
		q.budget.tokens = min(float64(q.opt.Burst), q.budget.tokens+float64(e.paid))
	}
	e.paid = 0
}

// flood counts a question that nobody was asked. The human reads one line about all of them.
func (q *Queue) flood(in Question) {
	q.budget.refused++
	if q.budget.refused == 1 {
		s := Style{Home: q.opt.Home, Width: 100}
		q.emit(Event{Kind: Notice, Question: in,
			Text: "too many questions: accesses are denied without asking, the first was " + s.wants(&in, 60)})
	}
}

// count watches for a human who is being worn down. An answer that allows shows that the questions make sense.
func (q *Queue) count(a Answer) {
	switch {
	case a.Allow:
		q.denials = 0
		return
	case a.By == ByGone || a.By == ByFlood || a.By == ByPolicy:
		return
	}
	q.denials++
	if q.denials < q.opt.AutoDenyAfter || q.autoDeny {
		return
	}
	q.autoDeny = true
	q.emit(Event{Kind: Notice, Text: fmt.Sprintf(
		"%d questions denied in a row: the rest of this session is denied without asking (sbx policy add, then run again)",
		q.denials)})
	for len(q.open) > 0 {
		q.resolve(q.open[0], denied(ByFlood))
	}
}
