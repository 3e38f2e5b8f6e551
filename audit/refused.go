package audit

import (
	"os"
	"strconv"
	"sync"
	"time"
)

// maxRefused is how many refusals a second are recorded one by one.
const maxRefused = 100

// Refusals records what a program can have refused as often as it likes: beyond a hundred a second it is counted, and
// the number is recorded with the first one of another second. It is safe for concurrent use.
type Refusals struct {
	mu      sync.Mutex
	since   time.Time // the second that is counted in
	n       int
	counted int
}

// Put records a refusal by put, or counts it.
func (r *Refusals) Put(e Event, put func(Event) (Event, error)) (Event, error) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	r.mu.Lock()
	if e.Time.Sub(r.since) >= time.Second || e.Time.Before(r.since) {
		n := r.counted
		r.since, r.n, r.counted = e.Time, 0, 0
		if r.mu.Unlock(); n > 0 {
			_, _ = put(beyond(n))
		}
		r.mu.Lock()
	}
	r.n++
	room := r.n <= maxRefused
	if !room {
		r.counted++
	}
	if r.mu.Unlock(); !room {
		return e, nil
	}
	return put(e)
}

// Flush records how many were counted.
func (r *Refusals) Flush(put func(Event) (Event, error)) {
	r.mu.Lock()
	n := r.counted
	r.counted = 0
	if r.mu.Unlock(); n > 0 {
		_, _ = put(beyond(n))
	}
}

func beyond(n int) Event {
	return Event{Kind: KindBlocked, UID: os.Getuid(), Decision: "deny",
		Reason: "refusals beyond " + strconv.Itoa(maxRefused) + " a second",
		Detail: []KV{{K: "count", V: strconv.Itoa(n)}}}
}

// Refused is Note for what a program can have refused as often as it likes.
func (w *Writer) Refused(e Event) (Event, error) {
	if e.Time.IsZero() {
		e.Time = w.now()
	}
	return w.refusals.Put(e, w.Note)
}
