package audit

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// maxOften is how many events a second are recorded one by one, and maxOftenBytes how many bytes they have in all. An
// event may have more than one of them: names, labels and a directory, each as long as the kernel allows.
const (
	maxOften      = 100
	maxOftenBytes = 64 << 10
)

// Often records what a program can do again as often as it likes: what it is refused, and what it was allowed before.
// Of each, what is beyond a hundred or 64 KiB a second is counted, and the number is recorded with the first one of
// another second. The first of a second is recorded however long it is. It is safe for concurrent use.
type Often struct{ refused, allowed burst }

// burst is what comes in one second.
type burst struct {
	mu      sync.Mutex
	since   time.Time
	n       int
	bytes   int // of those that were recorded one by one
	counted int // and were not
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
	before, room := b.room(&e)
	if before > 0 {
		_, _ = put(beyond(before, allowed))
	}
	if !room {
		return e, nil
	}
	return put(e)
}

// room says whether an event is recorded by itself, and how many were not in the second before it.
func (b *burst) room(e *Event) (before int, room bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := e.Time
	if at.Sub(b.since) >= time.Second || at.Before(b.since) {
		before = b.counted
		b.since, b.n, b.bytes, b.counted = at, 0, 0, 0
	}
	b.n++
	if b.n <= maxOften {
		size := len(appendBody(nil, e))
		room = b.n == 1 || b.bytes+size <= maxOftenBytes
		if room {
			b.bytes += size
		}
	}
	if !room {
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
	e.Reason += fmt.Sprintf(" beyond %d or %d KiB a second", maxOften, maxOftenBytes>>10)
	return e
}

// Often is Note for what a program can do again as often as it likes.
func (w *Writer) Often(e Event) (Event, error) {
	if e.Time.IsZero() {
		e.Time = w.now()
	}
	return w.often.Put(e, w.Note)
}
