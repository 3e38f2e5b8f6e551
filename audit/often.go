package audit

import (
	"os"
	"strconv"
	"sync"
	"time"
)

// maxOften is how many events a second are recorded one by one.
const maxOften = 100

// Often records what a program can do again as often as it likes: what it is refused, and what it was allowed before.
// Of each, what is beyond a hundred a second is counted, and the number is recorded with the first one of another
// second. It is safe for concurrent use.
type Often struct{ refused, allowed burst }

// burst is what comes in one second.
type burst struct {
	mu      sync.Mutex
	since   time.Time
	n       int
	counted int // and not recorded one by one
}

// Put records an event by put, or counts it.
func (o *Often) Put(e Event, put func(Event) (Event, error)) (Event, error) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	b, allowed := &o.refused, e.Decision == "allow"
	if allowed {
		b = &o.allowed
	}
	before, room := b.room(e.Time)
	if before > 0 {
		_, _ = put(beyond(before, allowed))
	}
	if !room {
		return e, nil
	}
	return put(e)
}

// room says whether an event is recorded by itself, and how many were not in the second before it.
func (b *burst) room(at time.Time) (before int, room bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at.Sub(b.since) >= time.Second || at.Before(b.since) {
		before = b.counted
		b.since, b.n, b.counted = at, 0, 0
	}
	b.n++
	if room = b.n <= maxOften; !room {
		b.counted++
	}
	return before, room
}

// Flush records how many were counted.
func (o *Often) Flush(put func(Event) (Event, error)) {
	for _, b := range []*burst{&o.refused, &o.allowed} {
		b.mu.Lock()
		n := b.counted
		b.counted = 0
		if b.mu.Unlock(); n > 0 {
			_, _ = put(beyond(n, b == &o.allowed))
		}
	}
}

func beyond(n int, allowed bool) Event {
	e := Event{Kind: KindBlocked, UID: os.Getuid(), Decision: "deny", Reason: "refusals",
		Detail: []KV{{K: "count", V: strconv.Itoa(n)}}}
	if allowed {
		e.Kind, e.Decision, e.Reason = KindAllow, "allow", "opens of secrets"
	}
	e.Reason += " beyond " + strconv.Itoa(maxOften) + " a second"
	return e
}

// Often is Note for what a program can do again as often as it likes.
func (w *Writer) Often(e Event) (Event, error) {
	if e.Time.IsZero() {
		e.Time = w.now()
	}
	return w.often.Put(e, w.Note)
}
