package prompt

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"sbx.example/sbx/broker/internal/decide"
)

// Queue holds the open questions of one session.
type Queue struct {
	opt Options

	mu       sync.Mutex
	closed   bool
	stop     context.CancelFunc // of the askers
	open     []*entry           // oldest first; MaxOpen is small, so everything is a scan
	resolved []string           // ring of ids
	next     int
	waiting  int
	joined   int // how many accesses have come to wait
	subs     []chan Event
	shown    *showing // on the terminal
	budget   budget
	given    []decide.Consent // oldest first: what can be taken back
	last     string           // the question whose answer was typed last on the terminal
	denials  int              // in a row, by people or by silence
	autoDeny bool             // after too many of them
}

type entry struct {
	q       Question
	subject string
	waiters []*waiter
	timer   *time.Timer
	paid    int     // tokens of the budget
	refused *Answer // a denial that stands, of which nobody who waits was told yet
}

// waiter is one access that is held.
type waiter struct {
	answer chan Answer // capacity 1
	entry  *entry
	in     Question // its own
	number int      // see Question.Last
}

// NewQueue makes the queue of one session and starts its hook, if there is one.
func NewQueue(opt Options) *Queue {
	opt.fill()
	q := &Queue{opt: opt}
	q.budget = budget{tokens: float64(opt.Burst), last: time.Now()}
	ctx, stop := context.WithCancel(context.Background())
	q.stop = stop
	if opt.HookCommand != "" && opt.Mode != DenyAll && opt.Mode != AllowAll {
		h := Hook{Command: opt.HookCommand, Env: opt.HookEnv, Timeout: opt.hookTimeout}
		q.askWith(ctx, asker{ask: h.Run, by: ByHook, failed: opt.HookFailed})
	}
	if opt.Answer != nil && opt.Mode != DenyAll && opt.Mode != AllowAll {
		q.askWith(ctx, asker{by: ByProgram, failed: opt.HookFailed, ask: func(ctx context.Context, qu Question) (Answer,
			bool, error) {
			a, answered := opt.Answer(ctx, qu)
			return a, answered, nil
		}})
	}
	return q
}

func (q *Queue) askWith(ctx context.Context, x asker) {
	if x.failed == nil {
		x.failed = func(error) {}
	}
	events, cancel := q.Subscribe()
	go func() { defer cancel(); x.serve(ctx, q, events) }()
}

// Ask holds the caller until its question is answered, its time is up or ctx ends. Everything but an
// answer that allows is a denial.
func (q *Queue) Ask(ctx context.Context, in Question) Answer {
	q.mu.Lock()
	w, a := q.admit(in)
	q.mu.Unlock()
	if w == nil {
		return a
	}
	select {
	case a = <-w.answer:
	case <-ctx.Done():
		a = q.leave(w)
	}
	return a
}

// admit finds or makes the question that in becomes part of, or settles it at once.
func (q *Queue) admit(in Question) (*waiter, Answer) {
	switch {
	case q.closed:
		return nil, denied(ByGone)
	case q.opt.Mode == AllowAll:
		return nil, Answer{Allow: true, Scope: Once, Life: ForOnce, By: ByPolicy}
	case q.opt.Mode == DenyAll:
		return nil, denied(ByPolicy)
	case q.autoDeny:
		return nil, denied(ByFlood)
	case q.waiting >= maxWaiter:
		q.flood(in)
		return nil, denied(ByFlood)
	}
	q.joined++
	w := &waiter{answer: make(chan Answer, 1), in: in, number: q.joined}
	e := q.find(q.open, &in)
	if e == nil {
		e = q.place(in)
	}
	if e == nil {
		q.flood(in)
		return nil, denied(ByFlood)
	}
	e.join(w)
	q.waiting++
	if e.q.ID == "" {
		q.put(e)
	}
	return w, Answer{}
}

func (e *entry) join(w *waiter) {
	w.entry = e
	e.waiters = append(e.waiters, w)
	e.q.Merged = len(e.waiters)
}

func denied(by string) Answer { return Answer{Scope: Once, Life: ForOnce, By: by} }

// find returns the question that says what in wants already.
func (q *Queue) find(list []*entry, in *Question) *entry {
	want, group, name := in.Subject(), in.Group(), Name{Path: in.Path, Dir: in.Dir}
	for _, e := range list {
		if e.subject == want || e.q.Many() && group != "" && e.q.Group() == group && slices.Contains(e.q.Paths, name) {
			return e
		}
	}
	return nil
}

// put opens a question.
func (q *Queue) put(e *entry) {
	e.q.ID, e.q.SID, e.q.Time = decide.NewID(), q.opt.SID, time.Now()
	e.timer = time.AfterFunc(q.opt.Timeout, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if slices.Contains(q.open, e) {
			q.resolve(e, denied(ByTimeout))
		}
	})
	q.open = append(q.open, e)
	e.q.Last = e.last()
	q.emit(Event{Kind: Asked, Question: e.q})
}

func (e *entry) last() int { return e.waiters[len(e.waiters)-1].number }

// Answer settles an open question. The first answer stands; any further one is an error and changes nothing.
func (q *Queue) Answer(id string, a Answer) error { return q.answerAfter(id, a, nil) }

// answerAfter calls first, of a denial, when that stands and before anybody who waits is told: a wait that first
// interrupts has been answered, and is not gone. The queue is not locked meanwhile: first may wait for a program.
func (q *Queue) answerAfter(id string, a Answer, first func()) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.open, func(e *entry) bool { return e.q.ID == id })
	if i < 0 || id == "" {
		if id != "" && slices.Contains(q.resolved, id) {
			return ErrAnswered
		}
		return ErrUnknown
	}
	if !q.opt.Mode.accepts(a.By) {
		return ErrMode
	}
	e := q.open[i]
	c, err := decide.Means(&e.q, a, time.Now())
	if err != nil {
		return err
	}
	if q.opt.Commit != nil {
		if err := q.opt.Commit(e.q, c); err != nil {
			return err
		}
	}
	q.remember(c)
	if first != nil && !c.Answer.Allow {
		q.remove(e)
		e.refused = &c.Answer
		q.mu.Unlock()
		first()
		q.mu.Lock()
	}
	late := e.latecomers(c.Answer)
	q.resolve(e, c.Answer)
	if c.Answer.Life.Lasts() {
		q.recheck()
	}
	q.askAnew(late)
	return nil
}

// latecomers takes out who has joined a question since it was shown, where the answer is about those who waited then.
func (e *entry) latecomers(a Answer) (late []*waiter) {
	if !a.Allow || a.Life.Lasts() {
		return nil
	}
	last := cmp.Or(a.Last, e.q.Last)
	i := slices.IndexFunc(e.waiters, func(w *waiter) bool { return w.number > last })
	if i < 0 {
		return nil
	}
	late = slices.Clone(e.waiters[i:])
	e.waiters, e.q.Merged = e.waiters[:i], i
	return late
}

// askAnew has accesses wait for questions of their own, with the number of those who wait.
func (q *Queue) askAnew(list []*waiter) {
	var fresh []*entry
	for _, w := range list {
		e := q.find(slices.Concat(q.open, fresh), &w.in)
		if e == nil {
			if e = q.place(w.in); e == nil {
				q.flood(w.in)
				q.waiting--
				w.answer <- denied(ByFlood)
				continue
			}
			fresh = append(fresh, e)
		}
		e.join(w)
	}
	for _, e := range fresh {
		q.put(e)
	}
}

// resolve takes the question off and tells all who wait.
func (q *Queue) resolve(e *entry, a Answer) {
	if e.refused == nil {
		q.remove(e)
	}
	q.repay(e, a)
	q.erase(e.q.ID)
	for _, w := range e.waiters {
		w.answer <- a
	}
	if len(e.waiters) == 1 { // It goes on first: those who are told next are woken by it, and take the processor from it.
		runtime.Gosched()
	}
	q.waiting -= len(e.waiters)
	q.emit(Event{Kind: Decided, Question: e.q, Answer: a})
	q.count(a)
}

func (q *Queue) remove(e *entry) {
	if i := slices.Index(q.open, e); i >= 0 {
		q.open = slices.Delete(q.open, i, i+1)
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	if len(q.resolved) < maxRecent {
		q.resolved = append(q.resolved, e.q.ID)
		return
	}
	q.resolved[q.next] = e.q.ID
	q.next = (q.next + 1) % maxRecent
}

// leave ends one wait. The last one out withdraws the question, so that a late answer grants nothing.
func (q *Queue) leave(w *waiter) Answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case a := <-w.answer:
		return a
	default:
	}
	e := w.entry
	if e.refused != nil {
		return *e.refused
	}
	e.waiters = slices.DeleteFunc(e.waiters, func(o *waiter) bool { return o == w })
	e.q.Merged = len(e.waiters)
	q.waiting--
	if len(e.waiters) == 0 {
		q.remove(e)
		q.emit(Event{Kind: Gone, Question: e.q})
	}
	return denied(ByGone)
}

func (q *Queue) recheck() {
	if q.opt.Recheck == nil {
		return
	}
	for _, e := range slices.Clone(q.open) {
		if !slices.Contains(q.open, e) {
			continue
		}
		if a, ok := q.opt.Recheck(e.q); ok {
			if a, err := a.Normal(&e.q, time.Now()); err == nil {
				a.By = ByPolicy
				q.resolve(e, a)
			}
		}
	}
}

// Pending returns the open questions as somebody sees them now, oldest first. An answer to one is about those who wait
// now only if it says so, with Last: who else answers has not seen this list.
func (q *Queue) Pending() []Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Question, len(q.open))
	for i, e := range q.open {
		out[i] = e.q
		out[i].Last = e.last()
	}
	return out
}

// Tell shows a person a line.
func (q *Queue) Tell(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.emit(Event{Kind: Notice, Text: text})
}

// Waits says whether a question is open.
func (q *Queue) Waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open) > 0
}

// Close denies everything that waits and everything that comes.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.stop()
	for _, e := range slices.Clone(q.open) {
		q.resolve(e, denied(ByGone))
	}
	for _, c := range q.subs {
		close(c)
	}
	q.subs = nil
}

// Recheck settles those open questions that have an answer by now: rules have changed meanwhile.
func (q *Queue) Recheck() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recheck()
}
