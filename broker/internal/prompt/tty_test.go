//go:build linux

package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sbx.example/sbx/broker/internal/decide"
)

// fakeScreen is a terminal without pixels.
type fakeScreen struct {
	mu    sync.Mutex
	drawn []string
	log   []string
	keys  chan byte
	eof   chan struct{}
	small [2]int // another size than the usual one

	interrupts func() // called by Interrupt
}

func newFake() *fakeScreen {
	return &fakeScreen{keys: make(chan byte, 1000), eof: make(chan struct{})}
}

func (f *fakeScreen) note(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, s)
}

func (f *fakeScreen) Hold()    { f.note("hold") }
func (f *fakeScreen) Clear()   { f.note("clear") }
func (f *fakeScreen) Release() { f.note("release") }
func (f *fakeScreen) Size() (int, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.small[0] > 0 {
		return f.small[0], f.small[1]
	}
	return 100, 22
}

func (f *fakeScreen) resize(cols, rows int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.small = [2]int{cols, rows}
}

func (f *fakeScreen) Draw(l ...string) {
	f.note("draw")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drawn = l
}

// Interrupt lets whoever could go on already do so.
func (f *fakeScreen) Interrupt() {
	if f.interrupts != nil {
		f.interrupts()
	}
	for range 100 {
		runtime.Gosched()
	}
	f.note("interrupt")
}

func (f *fakeScreen) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.drawn, "\n")
}

func (f *fakeScreen) Flush() {
	for {
		select {
		case <-f.keys:
		default:
			return
		}
	}
}

func (f *fakeScreen) ReadKey(ctx context.Context) (byte, error) {
	select {
	case k := <-f.keys:
		return k, nil
	case <-f.eof:
		return 0, io.EOF
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// onTTY runs body with a question open on a fake terminal.
func onTTY(t *testing.T, body func(t *testing.T, f *fakeScreen, q *Queue, c <-chan Answer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, q := newFake(), NewQueue(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := (&TTY{Screen: f, Style: Style{Word: "kobalu"}}).Start(ctx, q)
		synctest.Wait()
		body(t, f, q, ask(q, read("/a/b/c")))
		q.Close()
		cancel()
		<-done
		f.mu.Lock()
		defer f.mu.Unlock()
		held := 0
		for _, l := range f.log {
			switch l {
			case "hold":
				held++
			case "release":
				held--
			case "draw":
				if held != 1 {
					t.Error("drew on a screen that was not held")
				}
			}
		}
		if held != 0 {
			t.Errorf("the screen stays held: %v", f.log)
		}
	})
}

func TestTTYAnswers(t *testing.T) {
	for keys, want := range map[string]Answer{
		"o":          {Allow: true, Scope: Once, Life: ForOnce, By: ByTTY},
		"ds":         {Allow: true, Scope: Dir, Life: ForSession, By: ByTTY},
		"n":          {Scope: Once, Life: ForOnce, By: ByTTY},
		"v":          {Scope: File, Life: Forever, Persist: "user", By: ByTTY},
		"\x03":       {Scope: Once, Life: ForOnce, By: ByTTY},
		"x\r ?t\x1b": {Scope: Once, Life: ForOnce, By: ByTTY},
	} {
		onTTY(t, func(t *testing.T, f *fakeScreen, q *Queue, c <-chan Answer) {
			time.Sleep(time.Second)
			for _, k := range []byte(keys) {
				f.keys <- k
				time.Sleep(100 * time.Millisecond)
			}
			select {
			case a := <-c:
				want.Last = 1
				if a != want {
					t.Errorf("%q: %+v", keys, a)
				}
			default:
				t.Errorf("%q: no answer", keys)
			}
			synctest.Wait()
			if f.log[len(f.log)-1] != "release" {
				t.Errorf("%q: %v", keys, f.log)
			}
		})
	}
}

// TestArgumentsAreSeenWhole: a call of a tool is allowed where all of its arguments have been on the screen, or behind
// ? on pages; in the middle of them any could stand. A path of that length is one name, which its ends and a hash tell.
func TestArgumentsAreSeenWhole(t *testing.T) {
	words := strings.Repeat("fine ", 160) + "--exec=evil " + strings.Repeat("fine ", 300)
	call := decide.ToolCall(1, "push", words, true)
	for name, c := range map[string]struct {
		rows  int
		keys  string
		allow bool
		path  bool
	}{
		"no room": {22, "oo", false, false}, "a page of it": {22, "?o", true, false},
		"no page any more": {22, "*o", false, false},
		"room":             {60, "oo", true, false}, "a path": {22, "oo", true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, q := newFake(), NewQueue(Options{})
			f.resize(100, c.rows)
			(&TTY{Screen: f, Style: Style{Word: "kobalu"}}).Start(t.Context(), q)
			in := Question{PID: 1, Exe: "/usr/bin/agent", Op: call.Op, Path: call.Path}
			if c.path {
				in.Op = "read"
			}
			ch := ask(q, in)
			time.Sleep(time.Second) // by the clock of this test alone, as what is pressed at once counts for nothing
			press := func(k byte) { f.keys <- k; time.Sleep(100 * time.Millisecond) }
			for _, k := range []byte(c.keys) {
				if k != '*' {
					press(k)
					continue
				}
				for press('?'); strings.Contains(f.last(), "  page "); {
					press('?')
				}
			}
			seen := strings.Contains(strings.Join(strings.Fields(f.last()), ""), "--exec=evil")
			select {
			case a := <-ch:
				if a.Allow != c.allow {
					t.Errorf("%s: %+v", name, a)
				}
				if !c.path && c.keys == "oo" && !seen {
					t.Errorf("%s: allowed unseen:\n%s", name, f.last())
				}
			default:
				if c.allow {
					t.Errorf("%s: not allowed; the screen is:\n%s", name, f.last())
				}
			}
			q.Close()
		})
	}
}

// What is not on the screen is not allowed: a program can have a terminal become small, before the question or while it
// is drawn. Where there is room the same key answers, and no is taken anywhere.
func TestOnlyWhatIsSeenIsAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		cols, rows int
		key        byte
		allow, no  bool
	}{
		"room":         {60, 6, 's', true, false},
		"few rows":     {30, 2, 's', false, false},
		"narrow":       {12, 40, 's', false, false},
		"no, unseen":   {30, 2, 'n', false, true},
		"no, wherever": {12, 40, 'v', false, true},
	} {
		onTTY(t, func(t *testing.T, f *fakeScreen, q *Queue, ch <-chan Answer) {
			time.Sleep(time.Second) // it is drawn on the usual screen
			press := func(k byte) (Answer, bool) {
				f.keys <- k
				time.Sleep(100 * time.Millisecond)
				select {
				case a := <-ch:
					return a, true
				default:
					return Answer{}, false
				}
			}
			f.resize(c.cols, c.rows)
			a, ok := press(c.key)
			if c.key == 's' {
				if ok || !strings.Contains(strings.Join(strings.Fields(f.last()), " "), "was not all on the screen") {
					t.Errorf("%s: %+v for a question of another size; the screen is:\n%s", name, a, f.last())
				}
				if !ok {
					a, ok = press(c.key)
				}
			}
			if ok != (c.allow || c.no) || a.Allow != c.allow {
				t.Errorf("%s: %v %+v; the screen is:\n%s", name, ok, a, f.last())
			}
			f.resize(100, 22)
			if !ok {
				press(c.key)
				if a, ok := press(c.key); !ok || !a.Allow {
					t.Errorf("%s: %v %+v once there is room; the screen is:\n%s", name, ok, a, f.last())
				}
			}
		})
	}
}

func TestTypeAheadAndHeldKeysDoNotAnswer(t *testing.T) {
	onTTY(t, func(t *testing.T, f *fakeScreen, q *Queue, c <-chan Answer) {
		for range 100 { // somebody was typing, or leans on a key: never 400 ms of silence
			f.keys <- 'o'
			time.Sleep(30 * time.Millisecond)
		}
		if len(q.Pending()) != 1 {
			t.Fatal("a held key answered")
		}
		time.Sleep(410 * time.Millisecond)
		for _, k := range []byte("ls -o\rfoo\r") { // pasted
			f.keys <- k
		}
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		if len(q.Pending()) != 1 {
			t.Fatal("a paste answered")
		}
		time.Sleep(time.Second)
		f.keys <- 'n'
		if (<-c).Allow {
			t.Fatal("allowed")
		}
	})
}

func TestEndOfTerminalDenies(t *testing.T) {
	onTTY(t, func(t *testing.T, f *fakeScreen, q *Queue, c <-chan Answer) {
		close(f.eof)
		if a := <-c; a.Allow || a.By != ByTTY {
			t.Errorf("%+v", a)
		}
		if a := <-ask(q, read("/a/b/d")); a.Allow {
			t.Errorf("%+v", a)
		}
	})
}

func TestAnsweredElsewhereTakesTheQuestionAway(t *testing.T) {
	onTTY(t, func(t *testing.T, f *fakeScreen, q *Queue, c <-chan Answer) {
		time.Sleep(time.Second)
		if err := q.Answer(one(t, q).ID, Answer{Allow: true, By: BySocket}); err != nil {
			t.Fatal(err)
		}
		<-c
		synctest.Wait()
		if f.log[len(f.log)-1] != "release" {
			t.Errorf("%v", f.log)
		}
	})
}

func TestTTYShowsWordAndDetails(t *testing.T) {
	onTTY(t, func(t *testing.T, f *fakeScreen, q *Queue, c <-chan Answer) {
		time.Sleep(time.Second)
		if !strings.HasPrefix(f.last(), "[kobalu] cat wants to read /a/b/c - ") {
			t.Errorf("%q", f.last())
		}
		f.keys <- '?'
		time.Sleep(100 * time.Millisecond)
		for _, want := range []string{"who:    /usr/bin/cat, pid 7", "why:", "written to your policy",
			"everything below /a/b/", "\n[kobalu] "} {
			if !strings.Contains(f.last(), want) {
				t.Errorf("details lack %q:\n%s", want, f.last())
			}
		}
		f.keys <- 't'
		time.Sleep(100 * time.Millisecond)
		if !strings.Contains(f.last(), "read everything below /a/b/ at every depth\n[kobalu] t: [s]ession") {
			t.Errorf("%q", f.last())
		}
	})
}

func TestTTYStoreErrorDeniesAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		q := NewQueue(Options{Commit: func(_ Question, c decide.Consent) error {
			if c.Answer.Persist != "" {
				return fmt.Errorf("writing policy: read-only\x1b[2J file system")
			}
			return nil
		}})
		(&TTY{Screen: f}).Start(t.Context(), q)
		c := ask(q, read("/a/b/c"))
		time.Sleep(time.Second)
		f.keys <- 'f'
		if a := <-c; a.Allow {
			t.Errorf("%+v", a)
		}
		synctest.Wait()
		if !strings.Contains(f.last(), "denied: ") || !ascii(f.last()) {
			t.Errorf("%q", f.last())
		}
		q.Close()
		time.Sleep(time.Minute)
	})
}

// TestTTYSaysWhatBecameOfAnAnswer: where the session takes no answer from here nothing is called denied, and the
// question stands.
func TestTTYSaysWhatBecameOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		q := NewQueue(Options{Commit: func(Question, decide.Consent) error { return ErrMode }})
		(&TTY{Screen: f}).Start(t.Context(), q)
		c := ask(q, read("/a/b/c"))
		time.Sleep(time.Second)
		f.keys <- 'n'
		time.Sleep(100 * time.Millisecond)
		if !strings.Contains(f.last(), "not answered: \"this session takes no answers from here") {
			t.Errorf("%q", f.last())
		}
		time.Sleep(2 * time.Second)
		if !strings.Contains(f.last(), "wants to read /a/b/c - ") || len(c) != 0 {
			t.Errorf("%q, %d answers", f.last(), len(c))
		}
		q.Close()
		time.Sleep(time.Minute)
	})
}

// TestTTYMissesNoNotice: one that is told at once is shown.
func TestTTYMissesNoNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, q := newFake(), NewQueue(Options{})
		done := (&TTY{Screen: f}).Start(t.Context(), q)
		q.Tell("a program wants registry.example")
		synctest.Wait()
		if !strings.Contains(f.last(), "wants registry.example") {
			t.Errorf("%q", f.last())
		}
		q.Close()
		<-done
	})
}

// TestTTYClearsBeforeTheEffect: what an answer lets go on finds the question gone, and so does the denial that stands
// in for an answer that cannot be stored.
func TestTTYClearsBeforeTheEffect(t *testing.T) {
	for key, want := range map[byte]string{'o': "hold draw clear allow release", 'n': "hold draw clear deny release",
		0x1b: "hold draw clear deny release", 0x03: "hold draw clear deny interrupt release",
		'f': "hold draw draw clear store deny draw clear release"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			q := NewQueue(Options{Commit: func(_ Question, c decide.Consent) error {
				switch {
				case c.Answer.Persist != "":
					f.note("store")
					return errors.New("writing policy: read-only file system")
				case c.Answer.Allow:
					f.note("allow")
				default:
					f.note("deny")
				}
				return nil
			}})
			(&TTY{Screen: f}).Start(t.Context(), q)
			c := ask(q, read("/a/b/c"))
			time.Sleep(time.Second)
			f.keys <- key
			<-c
			f.note("told")
			time.Sleep(2 * time.Second) // what became of the answer is shown as long
			synctest.Wait()
			told := slices.Index(f.log, "told")
			if told < slices.Index(f.log, "interrupt") {
				t.Errorf("%c: who waits goes on before the program has heard of it: %v", key, f.log)
			}
			f.log = slices.Delete(f.log, told, told+1)
			if got := strings.Join(f.log, " "); got != want && got != strings.Replace(want, "draw draw", "draw", 1) {
				t.Errorf("%c: %s, want %s", key, got, want)
			}
			q.Close()
			time.Sleep(time.Minute)
		})
	}
}

// stuck is a terminal that takes nothing any more once a question is drawn.
type stuck struct {
	*fakeScreen
	over chan struct{}
}

func (s stuck) Draw(l ...string) {
	s.fakeScreen.Draw(l...)
	<-s.over
}

// TestAnswersFromElsewhereEraseFirst: whoever answers, what the answer lets go on finds the question gone. A terminal
// that hangs keeps no answer.
func TestAnswersFromElsewhereEraseFirst(t *testing.T) {
	for by, answer := range map[string]func(*testing.T, *Queue){
		"the socket": func(t *testing.T, q *Queue) {
			if err := q.Answer(one(t, q).ID, Answer{Allow: true, By: BySocket}); err != nil {
				t.Error(err)
			}
		},
		"a rule":            func(_ *testing.T, q *Queue) { q.Recheck() },
		"nobody":            func(*testing.T, *Queue) { time.Sleep(time.Hour) },
		"the session's end": func(_ *testing.T, q *Queue) { q.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			q := NewQueue(Options{Timeout: time.Minute, Recheck: func(Question) (Answer, bool) {
				return Answer{Allow: true, Scope: Once, Life: ForOnce}, true
			}})
			(&TTY{Screen: f}).Start(t.Context(), q)
			c := make(chan struct{})
			go func() {
				defer close(c)
				q.Ask(t.Context(), read("/a/b/c"))
				f.note("effect")
			}()
			time.Sleep(time.Second)
			answer(t, q)
			<-c
			synctest.Wait()
			got, want := strings.Join(f.log, " "), "hold draw clear effect"
			if strings.Replace(got, " release", "", 1) != want { // which comes at any time after clear
				t.Errorf("%s: %s, want %s", by, got, want)
			}
			q.Close()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, q := stuck{newFake(), make(chan struct{})}, NewQueue(Options{})
		(&TTY{Screen: s}).Start(t.Context(), q)
		c := ask(q, read("/a/b/c"))
		time.Sleep(time.Second)
		begin := time.Now()
		if err := q.Answer(one(t, q).ID, Answer{Allow: true, By: BySocket}); err != nil {
			t.Error(err)
		}
		if a := <-c; !a.Allow || time.Since(begin) > eraseTime {
			t.Errorf("%+v after %s", a, time.Since(begin))
		}
		close(s.over)
		q.Close()
		synctest.Wait()
	})
}

func TestWordsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		seen[NewWord()] = true
	}
	if len(seen) < 45 {
		t.Errorf("50 words, %d different", len(seen))
	}
}
