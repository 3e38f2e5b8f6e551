package watch

import (
	"context"
	"sync"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/plan"
)

// lookEvery is how often new sessions are looked for.
const lookEvery = 500 * time.Millisecond

// Feed follows every session below root and sends what happens until ctx ends.
func Feed(ctx context.Context, root string, out chan<- Event) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	known := make(map[string]bool)
	send := func(ev Event) error {
		select {
		case out <- ev:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		ids, err := control.List(root)
		if err != nil {
			_ = send(Event{Status: err.Error()})
		}
		for _, sid := range ids {
			mu.Lock()
			old := known[sid]
			known[sid] = true
			mu.Unlock()
			if old {
				continue
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				follow(ctx, root, sid, send)
				mu.Lock()
				delete(known, sid)
				mu.Unlock()
			}()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func follow(ctx context.Context, root, sid string, send func(Event) error) {
	c, err := control.Dial(root, sid)
	if err != nil { // dead, or still being made: looked at again
		if !control.HasEnded(err) {
			_ = send(Event{Status: "a session is not shown: " + plan.Bytes(err.Error()).Quote()})
		}
		return
	}
	defer c.Close()
	if send(Event{SID: sid, Up: &c.Info}) != nil {
		return
	}
	_ = c.Follow(ctx, func(m *control.Message) error { return send(Event{SID: sid, Message: m}) })
	_ = send(Event{SID: sid, Down: true})
}

// Act carries an action out on a connection of its own: a refused answer ends the connection, and must
// not end the one that events come through.
func Act(root string, a Action) error {
	c, err := control.Dial(root, a.SID)
	if err != nil {
		return err
	}
	defer c.Close()
	switch {
	case a.Kill:
		return c.Kill(0, "")
	case a.Answer.Allow:
		return c.Approve(a.ID, a.Answer)
	default:
		return c.Deny(a.ID, a.Answer)
	}
}
