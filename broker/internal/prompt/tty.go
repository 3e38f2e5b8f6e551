package prompt

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// Screen is the human's own terminal, as launch has it. ReadKey returns keys that were typed there and
// never one that the sandbox wrote; its error is the context's, or the end of the terminal.
type Screen interface {
	Hold()                                 // the guest's output stops, and keys go to ReadKey
	Draw(lines ...string)                  // replaces what was drawn
	Flush()                                // forgets keys that were typed already
	ReadKey(context.Context) (byte, error) // one key
	Release()                              // takes the question away, has the guest redraw, goes on
	Width() int
}

// TTY asks on the terminal that the sandbox runs in.
type TTY struct {
	Screen Screen
	Style  Style         // Word is set, Width is the screen's
	Delay  time.Duration // 400 ms of silence before a key counts
	Paste  time.Duration // 25 ms: keys closer together were not pressed by a finger
	Notice time.Duration // 1.5 s for which a notice stays
}

// NewWord makes the word that marks the true questions of a session. The guest never sees it, since it
// cannot read the screen, so a question that it draws itself lacks it.
func NewWord() string {
	const consonants, vowels = "bdfghjklmnprstvz", "aeiou"
	var b [6]byte
	_, _ = rand.Read(b[:])
	for i := range b {
		set := consonants
		if i%2 == 1 {
			set = vowels
		}
		b[i] = set[int(b[i])%len(set)]
	}
	return string(b[:])
}

// Serve shows the questions one at a time, the oldest first, until ctx or the queue ends.
func (t *TTY) Serve(ctx context.Context, q *Queue) {
	if !q.opt.Mode.accepts(ByTTY) {
		return
	}
	t.fill()
	for ctx.Err() == nil {
		events, cancel := q.Subscribe()
		more := t.follow(ctx, q, events)
		cancel()
		if !more {
			return
		}
	}
}

func (t *TTY) fill() {
	if t.Delay <= 0 {
		t.Delay = 400 * time.Millisecond
	}
	if t.Paste <= 0 {
		t.Paste = 25 * time.Millisecond
	}
	if t.Notice <= 0 {
		t.Notice = 1500 * time.Millisecond
	}
	if t.Style.Word == "" {
		t.Style.Word = NewWord()
	}
}

// follow works until the channel of events is lost; it says whether to take a new one.
func (t *TTY) follow(ctx context.Context, q *Queue, events <-chan Event) bool {
	held := false
	defer func() {
		if held {
			t.Screen.Release()
		}
	}()
	for {
		if open := q.Pending(); len(open) > 0 {
			if !held {
				t.Screen.Hold()
				held = true
			}
			if !t.ask(ctx, q, open[0], events) {
				return !q.isClosed() && ctx.Err() == nil
			}
			continue
		}
		if held {
			t.Screen.Release()
			held = false
		}
		select {
		case <-ctx.Done():
			return false
		case ev, ok := <-events:
			if !ok {
				return !q.isClosed()
			}
			t.notice(ctx, ev)
		}
	}
}

func (q *Queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

func (t *TTY) notice(ctx context.Context, ev Event) {
	if ev.Kind != Notice {
		return
	}
	t.Screen.Hold()
	t.say(ctx, ev.Text)
	t.Screen.Release()
}

func (t *TTY) say(ctx context.Context, text string) {
	t.Screen.Draw(Shorten("["+t.Style.Word+"] "+text, max(t.Screen.Width(), 40)))
	select {
	case <-ctx.Done():
	case <-time.After(t.Notice):
	}
}

// ask shows one question until it is answered here, settled elsewhere or nobody waits any more. False:
// the events ended.
func (t *TTY) ask(ctx context.Context, q *Queue, qu Question, events <-chan Event) bool {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	var notices []string
	defer func() {
		for _, text := range notices {
			t.say(outer, text)
		}
	}()
	done := make(chan Answer, 1)
	go func() {
		if a, ok := t.read(ctx, qu); ok {
			done <- a
		}
		close(done)
	}()
	defer func() {
		cancel()
		for range done { // the reader has let go of the terminal
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return false
		case a, ok := <-done:
			if !ok {
				return false
			}
			a.By, a.Last = ByTTY, qu.Last
			if err := q.Answer(qu.ID, a); err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrAnswered) {
				// The answer could not be carried out or stored; the least of it still can.
				notices = append(notices, "denied: "+quote(err.Error()))
				_ = q.Answer(qu.ID, Answer{By: ByTTY})
			}
			return true
		case ev, ok := <-events:
			switch {
			case !ok:
				return false
			case ev.Kind == Notice:
				notices = append(notices, ev.Text)
			case ev.Kind != Asked && ev.Question.ID == qu.ID:
				return true
			}
		}
	}
}

// read turns keys into an answer. The end of the terminal denies; false means that ctx ended.
func (t *TTY) read(ctx context.Context, qu Question) (Answer, bool) {
	style, details := t.Style, false
	var typed []byte
	draw := func() {
		style.Width = t.Screen.Width()
		var lines []string
		switch {
		case details:
			lines = style.Details(qu)
		case qu.Many(): // what an answer is about is on the screen, all of it
			lines = style.rows(&qu)
		}
		line := style.Line(qu)
		if len(typed) > 0 {
			lines = append(lines, style.wrap(style.Wide(qu, typed[0]), 0)...)
			line = Shorten("["+style.Word+"] "+string(typed)+": [s]ession [h]our [f]orever [p]roject / [n]o / ne[v]er",
				max(style.Width, 40))
		}
		t.Screen.Draw(append(lines, line)...)
	}
	draw()
	t.Screen.Flush()
	quiet := false
	for {
		if !quiet {
			if err := t.silence(ctx); err != nil {
				return Answer{}, ctx.Err() == nil
			}
			quiet = true
		}
		k, err := t.Screen.ReadKey(ctx)
		if err != nil {
			return Answer{}, ctx.Err() == nil
		}
		switch pasted, err := t.key(ctx, t.Paste); {
		case err != nil:
			return Answer{}, ctx.Err() == nil
		case pasted:
			quiet, typed = false, nil
			draw()
			continue
		}
		if k == '?' && len(typed) == 0 {
			details = !details
			draw()
			continue
		}
		a, more, ok := Keys(append(typed, k), &qu)
		if ok {
			return a, true
		}
		if typed = append(typed, k); !more {
			typed = nil
		}
		draw()
	}
}

// silence waits until no key has come for Delay: whoever is typing has not read the question yet.
func (t *TTY) silence(ctx context.Context) error {
	for {
		if came, err := t.key(ctx, t.Delay); err != nil || !came {
			return err
		}
	}
}

// key reports whether a key comes within d, and drops it.
func (t *TTY) key(ctx context.Context, d time.Duration) (bool, error) {
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	switch _, err := t.Screen.ReadKey(short); {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case short.Err() != nil:
		return false, nil
	default:
		return false, err
	}
}
