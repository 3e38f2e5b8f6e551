package audit

import "time"

// soonAfter is how long a record of Soon may be with the kernel alone, and one of Later with the broker. It is long
// enough for many decisions to share one sync.
const soonAfter = 5 * time.Millisecond

// Soon is Append for a record that may take effect when it is written: it outlives every process that ends, and a power
// cut from a few milliseconds later on. A sync that fails then breaks the log, so that everything after it is refused.
func (w *Writer) Soon(e Event) (Event, error) { return w.soonOrLater(e, false) }

// Later is Soon for a record that follows from one that is written: it is written with the next one or a few
// milliseconds later, so the death of the broker may lose it, and never what it follows from.
func (w *Writer) Later(e Event) (Event, error) { return w.soonOrLater(e, true) }

func (w *Writer) soonOrLater(e Event, hold bool) (Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, err := w.put(e, hold)
	if err == nil && !w.soon {
		w.soon = true
		time.AfterFunc(soonAfter, w.catchUp)
	}
	return e, err
}

// catchUp puts on disk what Soon and Later have promised.
func (w *Writer) catchUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.soon = false
	if w.fd >= 0 && w.broken == nil {
		_ = w.flush()         // what there is no room for is written with the next record
		_ = w.sync(w.written) // an error stays in w.broken
	}
}

// flush writes what Later has kept. w.mu is held.
func (w *Writer) flush() error {
	if len(w.held) == 0 {
		return nil
	}
	if err := w.store(nil, false); err != nil {
		return w.fail(err)
	}
	w.written = w.seq
	return nil
}
