package watch

import (
	"bytes"
	"context"
	"io"
	"time"

	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// Terminal is where the screen is drawn; cli has put it into raw mode.
type Terminal interface {
	io.Writer
	Size() (width, height int)
}

const (
	enter = prompt.Known + "\x1b[?1049h\x1b[?6l\x1b[?25l\x1b[2J"
	leave = "\x1b[m\x1b[?25h\x1b[?1049l"
)

// Input is what the screen follows.
type Input struct {
	Keys    <-chan []byte   // what the keyboard sends; the screen ends with it
	Resized <-chan struct{} // Terminal.Size has changed
	Events  <-chan Event    // of the sessions
}

// Run shows the model until the person quits, ctx ends or the keyboard does. Act carries an action out and is called
// from a goroutine of its own.
func Run(ctx context.Context, m *Model, t Terminal, in Input, act func(Action) error) error {
	if _, err := io.WriteString(t, enter); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(t, leave) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan Event, 16)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		width, height := t.Size()
		if err := draw(m, t, width, height); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b, ok := <-in.Keys:
			if !ok {
				return nil
			}
			keys := parseKeys(b)
			if pasted(keys) {
				m.Update(Event{Status: "pasted text is not taken for keys"}, time.Now())
				continue
			}
			if w, h := t.Size(); w != width || h != height { // nobody has seen what a key is about
				m.drawn = drawing{}
			}
			for _, k := range keys {
				for _, a := range m.Key(k, time.Now()) {
					if a.Quit {
						return nil
					}
					go perform(ctx, a, act, results)
				}
			}
		case <-in.Resized:
		case ev := <-in.Events:
			m.Update(ev, time.Now())
			for n := len(in.Events); n > 0; n-- { // one drawing for all that has come
				m.Update(<-in.Events, time.Now())
			}
		case ev := <-results:
			m.Update(ev, time.Now())
		case now := <-tick.C:
			m.Tick(now)
		}
	}
}

// pasted: no finger presses three letters within one read.
func pasted(keys []Key) bool {
	n := 0
	for _, k := range keys {
		if k < 256 {
			n++
		}
	}
	return n > 2
}

func perform(ctx context.Context, a Action, act func(Action) error, results chan<- Event) {
	err := act(a)
	if err == nil {
		return
	}
	select {
	case results <- Event{Status: a.SID + ": " + plan.Bytes(err.Error()).Quote()}:
	case <-ctx.Done():
	}
}

func draw(m *Model, t Terminal, width, height int) error {
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for i, l := range m.View(width, height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, err := t.Write(b.Bytes())
	return err
}
