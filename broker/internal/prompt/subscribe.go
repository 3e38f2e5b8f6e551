package prompt

import "slices"

// subscriberEvents is how far a subscriber may fall behind.
const subscriberEvents = 256

// Subscribe returns the events from now on. The channel is closed when the queue is, when cancel is
// called, and when its reader falls too far behind: nothing is ever left out in the middle, so a reader
// that lost its channel subscribes anew and calls Pending.
func (q *Queue) Subscribe() (<-chan Event, func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := make(chan Event, subscriberEvents)
	if q.closed {
		close(c)
		return c, func() {}
	}
	q.subs = append(q.subs, c)
	return c, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.unsubscribe(c)
	}
}

func (q *Queue) unsubscribe(c chan Event) {
	if i := slices.Index(q.subs, c); i >= 0 {
		q.subs = slices.Delete(q.subs, i, i+1)
		close(c)
	}
}

// emit passes an event on. The queue is locked, so all see one order.
func (q *Queue) emit(ev Event) {
	if q.opt.Notify != nil {
		q.opt.Notify(ev)
	}
	for _, c := range slices.Clone(q.subs) {
		select {
		case c <- ev:
		default:
			q.unsubscribe(c)
		}
	}
}
