package prompt

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Screen is the human's own terminal, as launch has it. ReadKey returns keys that were typed there and
// never one that the sandbox wrote; its error is the context's, or the end of the terminal.
type Screen interface {
	Hold()                                 // the guest's output stops, and keys go to ReadKey
	Draw(lines ...string)                  // replaces what was drawn
	Flush()                                // forgets keys that were typed already
	ReadKey(context.Context) (byte, error) // one key
	Clear()                                // takes the question away; keys are the guest's again, its output waits
	Release()                              // does the same, has the guest redraw, goes on
	Interrupt()                            // has the program hear Ctrl-C, before it returns
	Size() (cols, rows int)                // what can be drawn on
}

// TTY asks on the terminal that the sandbox runs in.
type TTY struct {
	Screen Screen
	Style  Style // Word is set, Width is the screen's

	silence time.Duration // for which no key comes before one counts; 0: 400 ms
}

const (
	pasteGap    = 25 * time.Millisecond   // keys closer together were not pressed by a finger
	noticeStays = 1500 * time.Millisecond // how long a notice is shown
)

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

// Start shows the questions one at a time, the oldest first, until ctx or the queue ends, and closes done then. From
// its return on it misses no notice.
func (t *TTY) Start(ctx context.Context, q *Queue) (done <-chan struct{}) {
	ended := make(chan struct{})
	if !q.opt.Mode.accepts(ByTTY) {
		close(ended)
		return ended
	}
	t.fill()
	events, cancel := q.Subscribe()
	go func() {
		defer close(ended)
		for t.follow(ctx, q, events) && ctx.Err() == nil {
			cancel()
			events, cancel = q.Subscribe()
		}
		cancel()
	}()
	return ended
}

func (t *TTY) fill() {
	t.silence = cmp.Or(t.silence, 400*time.Millisecond)
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
	if p, ok := t.Screen.(interface{ Print(string) bool }); ok {
		if p.Print("sbx: " + ev.Text) {
			return
		}
	}
	t.Screen.Hold()
	t.say(ctx, ev.Text)
	t.Screen.Release()
}

func (t *TTY) say(ctx context.Context, text string) {
	style := t.Style
	style.Width, _ = t.Screen.Size()
	t.Screen.Draw(style.wrap("["+t.Style.Word+"] "+text, 2)...)
	select {
	case <-ctx.Done():
	case <-time.After(noticeStays):
	}
}

// ask shows one question until it is answered here, settled elsewhere or nobody waits any more. False:
// the events ended.
func (t *TTY) ask(ctx context.Context, q *Queue, qu Question, events <-chan Event) bool {
	shown := q.show(qu.ID)
	if shown == nil {
		return true
	}
	defer shown.erased()
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	var notices []string
	defer func() {
		for _, text := range notices {
			t.say(outer, text)
		}
	}()
	done := make(chan reply, 1)
	go func() {
		if r, ok := t.read(ctx, q, qu); ok {
			done <- r
		}
		close(done)
	}()
	letGo := func() {
		cancel()
		for range done { // the reader has let go of the terminal
		}
	}
	defer letGo()
	for {
		select {
		case <-ctx.Done():
			return false
		case r, ok := <-done:
			if !ok {
				return false
			}
			r.By, r.Last = ByTTY, qu.Last
			t.answer(outer, q, shown, r)
			return true
		case <-shown.erase: // answered elsewhere
			letGo()
			t.Screen.Clear()
			shown.erased()
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

// answer takes the question away and gives the answer, in this order: what the answer lets go on may write to the
// terminal at once, as another program of the pipeline does.
func (t *TTY) answer(ctx context.Context, q *Queue, shown *showing, r reply) {
	t.Screen.Clear()
	shown.erased()
	var first func()
	if r.interrupt { // before who waits is told, or the program could go on to the next thing
		first = t.Screen.Interrupt
	}
	err := q.answerAfter(shown.id, r.Answer, first)
	if err == nil || errors.Is(err, ErrUnknown) || errors.Is(err, ErrAnswered) {
		return
	}
	// The answer could not be carried out or stored; the least of it still can, where it counts at all.
	said := "denied: "
	if denied := q.Answer(shown.id, Answer{By: ByTTY}); denied != nil {
		said = "not answered: "
	}
	t.say(ctx, said+quote(err.Error()))
	t.Screen.Clear()
}

// reply is what was typed at a question.
type reply struct {
	Answer
	interrupt bool // with Ctrl-C
}

// dialog is what is shown while a question waits for a key.
type dialog struct {
	page  int    // of the details, from 1; 0: they are not shown
	typed []byte // the beginning of an answer
	said  string // what became of the last key

	cols, rows int  // of the screen, as it was drawn for
	cut        bool // which has no room for all of it
}

// notWhole is said of a key that allows what may not have been seen. A program can have many terminals change their
// size.
const notWhole = "this was not all on the screen: make that larger, look, and press the key again, or n"

// whole says whether all that an answer is about is on the screen.
func (t *TTY) whole(d *dialog) bool {
	cols, rows := t.Screen.Size()
	return !d.cut && cols == d.cols && rows == d.rows
}

// draw shows a question with what belongs to it now, and leaves out a page of details that is beyond the last.
func (t *TTY) draw(d *dialog, q *Queue, qu Question) {
	style := t.Style
	cols, rows := t.Screen.Size()
	style.Width = cols
	most := max(rows/3, 4)
	if qu.Words() && d.page == 0 { // all of them, or no key allows anything
		most = whole
	}
	line := style.next(qu, d.typed, most)
	least := len(line)
	if d.said != "" {
		line = append(style.wrap(d.said, 2), line...)
	}
	room := max(rows-len(line), 1)
	var lines []string
	if d.page > 0 {
		lines = page(slices.Concat(style.Details(qu), []string{"  ^C    no, this time, and the program hears it"},
			style.undo(q)), room, &d.page)
		if d.page == 0 {
			t.draw(d, q, qu)
			return
		}
	}
	if d.page == 0 && qu.Many() { // what an answer is about is on the screen, all of it
		lines = style.rows(&qu, room)
	}
	d.cols, d.rows = cols, rows
	d.cut = len(lines)+least > rows || cols < leastWidth
	t.Screen.Draw(append(lines, line...)...)
}

// page is one of as many as the rows need; beyond the last it is none, and n becomes 0.
func page(list []string, room int, n *int) []string {
	if len(list) <= room && *n == 1 {
		return list
	}
	each := max(room-1, 1)
	pages := (len(list) + each - 1) / each
	if *n > pages || len(list) <= room {
		*n = 0
		return nil
	}
	from := (*n - 1) * each
	out := slices.Clone(list[from:min(from+each, len(list))])
	return append(out, fmt.Sprintf("  page %d/%d, [?]", *n, pages))
}

// read turns keys into an answer. The end of the terminal denies; false means that ctx ended.
func (t *TTY) read(ctx context.Context, q *Queue, qu Question) (reply, bool) {
	var d dialog
	draw := func() { t.draw(&d, q, qu) }
	draw()
	t.Screen.Flush()
	quiet := false
	for {
		if !quiet {
			if err := t.awaitSilence(ctx); err != nil {
				return reply{}, ctx.Err() == nil
			}
			quiet = true
		}
		k, err := t.Screen.ReadKey(ctx)
		if err != nil {
			return reply{}, ctx.Err() == nil
		}
		switch pasted, err := t.key(ctx, pasteGap); {
		case err != nil:
			return reply{}, ctx.Err() == nil
		case pasted:
			quiet, d.typed = false, nil
			draw()
			continue
		}
		if d.said = ""; len(d.typed) == 0 && (k == '?' || k == 'u') {
			if k == '?' {
				d.page++
			} else {
				d.said = t.undo(q)
			}
			draw()
			continue
		}
		a, more, ok := Keys(append(d.typed, k), &qu)
		if ok && a.Allow && !t.whole(&d) {
			more, d.said = false, notWhole
		} else if ok {
			return reply{a, k == interruptKey}, true
		}
		if d.typed = append(d.typed, k); !more {
			d.typed = nil
		}
		draw()
	}
}

// undo takes the last answer back and says so.
func (t *TTY) undo(q *Queue) string {
	c, err := q.Undo()
	if err != nil {
		return "not taken back: " + quote(err.Error())
	}
	return "taken back: " + c.Text(t.Style.name)
}

// undo is the line of the details about the key that takes the last answer back.
func (s Style) undo(q *Queue) []string {
	c, ok := q.Last()
	if !ok {
		return nil
	}
	return s.wrap("  u     takes back the last answer: "+c.Text(s.name), len("  o     "))
}

// awaitSilence waits until no key has come for a while: whoever is typing has not read the question yet.
func (t *TTY) awaitSilence(ctx context.Context) error {
	for {
		if came, err := t.key(ctx, t.silence); err != nil || !came {
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
