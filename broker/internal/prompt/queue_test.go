package prompt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sbx.example/sbx/broker/internal/decide"
)

func ask(q *Queue, in Question) <-chan Answer {
	c := make(chan Answer, 1)
	go func() { c <- q.Ask(context.Background(), in) }()
	return c
}

func read(p string) Question { return Question{PID: 7, Exe: "/usr/bin/cat", Op: "open", Path: p} }

func one(t *testing.T, q *Queue) Question {
	t.Helper()
	synctest.Wait()
	p := q.Pending()
	if len(p) != 1 {
		t.Fatalf("%d questions are open, want 1: %+v", len(p), p)
	}
	return p[0]
}

func TestEqualAsksMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		q := NewQueue(Options{Notify: func(e Event) {
			if e.Kind == Asked {
				asked++
			}
		}})
		defer q.Close()
		var all []<-chan Answer
		for i := range 100 {
			in := read("/p/a/file")
			in.PID, in.Op = i, []string{"open", "stat", "access"}[i%3]
			all = append(all, ask(q, in))
		}
		qu := one(t, q)
		if qu.Merged != 100 || asked != 1 || len(qu.ID) != 32 {
			t.Fatalf("merged %d, asked %d times, id %q", qu.Merged, asked, qu.ID)
		}
		if err := q.Answer(qu.ID, Answer{Allow: true, By: BySocket, Last: qu.Last}); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if a := <-c; !a.Allow || a.Scope != Once || a.By != BySocket {
				t.Fatalf("answer %+v", a)
			}
		}
		if err := q.Answer(qu.ID, Answer{Allow: true, By: BySocket}); !errors.Is(err, ErrAnswered) {
			t.Fatalf("second answer: %v", err)
		}
	})
}

func TestDifferentSubjectsDoNotMerge(t *testing.T) {
	base := read("/p/a/link")
	for name, other := range map[string]Question{
		"write":  {Op: "write", Path: "/p/a/link"},
		"target": {Op: "open", Path: "/p/a/link", Target: "/home/u/.ssh/id"},
		"host":   {Op: "connect", Host: "a.example", Port: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(Options{})
			defer q.Close()
			ask(q, base)
			ask(q, other)
			synctest.Wait()
			if n := len(q.Pending()); n != 2 {
				t.Errorf("%s: %d questions", name, n)
			}
		})
	}
}

func TestTimeoutDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{})
		defer q.Close()
		start := time.Now()
		a := <-ask(q, read("/x/y"))
		if a.Allow || a.By != ByTimeout || time.Since(start) != 5*time.Minute {
			t.Fatalf("%+v after %v", a, time.Since(start))
		}
	})
}

func TestWithdrawnQuestionTakesNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{})
		defer q.Close()
		ctx, cancel := context.WithCancel(t.Context())
		c := make(chan Answer, 1)
		go func() { c <- q.Ask(ctx, read("/x/y")) }()
		id := one(t, q).ID
		cancel()
		if a := <-c; a.Allow || a.By != ByGone {
			t.Fatalf("%+v", a)
		}
		if err := q.Answer(id, Answer{Allow: true, By: BySocket}); !errors.Is(err, ErrAnswered) {
			t.Fatalf("late answer: %v", err)
		}
		// The next access to the same file is a new question with a new id.
		ask(q, read("/x/y"))
		if one(t, q).ID == id {
			t.Fatal("id was used again")
		}
	})
}

// TestSiblingsBecomeOneQuestion: several files of one directory that wait are one question about exactly these. It
// never comes to be about more: then it is another one, with another id.
func TestSiblingsBecomeOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var committed []decide.Grant
		q := NewQueue(Options{Commit: func(_ Question, c decide.Consent) error {
			committed = append(committed, c.Covers...)
			return nil
		}})
		defer q.Close()
		waiting := map[string]<-chan Answer{}
		var old string
		for i := range 6 {
			p := fmt.Sprintf("/opt/sdk/include/h%d", i)
			waiting[p] = ask(q, read(p))
			synctest.Wait()
			if i == 4 {
				old = one(t, q).ID
			}
		}
		qu := one(t, q)
		if qu.Path != "/opt/sdk/include" || len(qu.Paths) != 6 || qu.Merged != 6 || qu.ID == old {
			t.Fatalf("%+v", qu)
		}
		if err := q.Answer(old, Answer{Allow: true, Life: ForSession, By: BySocket}); !errors.Is(err, ErrAnswered) {
			t.Fatalf("an answer to what was shown before: %v", err)
		}
		if err := q.Answer(qu.ID, Answer{Allow: true, Life: ForSession, By: BySocket}); err != nil {
			t.Fatal(err)
		}
		for p, c := range waiting {
			if a := <-c; !a.Allow || a.Scope != File {
				t.Errorf("%s: %+v", p, a)
			}
		}
		for _, g := range committed {
			if _, waited := waiting[g.Name]; !waited || g.Scope != decide.File {
				t.Errorf("%+v was granted", g)
			}
			delete(waiting, g.Name)
		}
		if len(waiting) != 0 {
			t.Errorf("%v were not granted", waiting)
		}
	})
}

// TestQuestionsStayShort: a question about several objects is about no more than a screen shows.
func TestQuestionsStayShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{Burst: 1000, MaxOpen: 1000})
		defer q.Close()
		for i := range 50 {
			ask(q, read(fmt.Sprintf("/opt/sdk/include/h%d", i)))
			ask(q, read("/opt/sdk/long/"+strings.Repeat("x", 250)+fmt.Sprint(i)))
			synctest.Wait()
		}
		n := 0
		for _, qu := range q.Pending() {
			n += len(qu.Objects())
			if len(qu.Paths) > maxTogether {
				t.Errorf("a question about %d objects", len(qu.Paths))
			}
			lines := Style{Width: 80, Word: "kobalu"}.rows(&qu, 20)
			if len(lines) != len(qu.Paths) {
				t.Errorf("%d of %d names are shown", len(lines), len(qu.Paths))
			}
		}
		if n < 100 {
			t.Errorf("%d of 100 wait", n)
		}
	})
}

func TestOnceIsForWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var committed []decide.Grant
		q := NewQueue(Options{CoalesceAfter: 1, Commit: func(_ Question, c decide.Consent) error {
			committed = append(committed, c.Covers...)
			return nil
		}})
		defer q.Close()
		a, b := ask(q, read("/opt/sdk/a")), ask(q, read("/opt/sdk/b"))
		if err := q.Answer(one(t, q).ID, Answer{Allow: true, By: BySocket}); err != nil {
			t.Fatal(err)
		}
		if x, y := <-a, <-b; !x.Allow || !y.Allow || x.Scope != Once || len(committed) != 0 {
			t.Fatalf("%+v %+v %+v", x, y, committed)
		}
	})
}

// TestWhatIsAskedApart: another program, right, directory, reason or a link is another question.
func TestWhatIsAskedApart(t *testing.T) {
	for name, other := range map[string]Question{
		"program":   {Exe: "/tmp/evil", Op: "open", Path: "/srv/p/b"},
		"right":     {Exe: "/usr/bin/cat", Op: "write", Path: "/srv/p/b"},
		"directory": {Exe: "/usr/bin/cat", Op: "open", Path: "/srv/p/d/b"},
		"reason":    {Exe: "/usr/bin/cat", Op: "open", Path: "/srv/p/b", Why: "a rule asks"},
		"link":      {Exe: "/usr/bin/cat", Op: "open", Path: "/srv/p/b", Target: "/srv/key"},
		"listing":   {Exe: "/usr/bin/cat", Op: "list", Path: "/srv/p/b", Dir: true},
		"walk":      {Exe: "/usr/bin/cat", Op: "open", Path: "/srv/p/b", Walk: "/srv"},
		"socket":    {Exe: "/usr/bin/cat", Op: "connect", Path: "/srv/p/b"},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(Options{CoalesceAfter: 1})
			defer q.Close()
			ask(q, read("/srv/p/a"))
			synctest.Wait()
			ask(q, other)
			synctest.Wait()
			if n := len(q.Pending()); n != 2 {
				t.Errorf("%s: %d questions", name, n)
			}
		})
	}
	// The same object by another program is another question as well: what is allowed once is for who was named.
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{})
		defer q.Close()
		ask(q, read("/srv/p/a"))
		ask(q, Question{Exe: "/tmp/evil", Op: "open", Path: "/srv/p/a"})
		synctest.Wait()
		if n := len(q.Pending()); n != 2 {
			t.Errorf("%d questions", n)
		}
	})
}

// 10 000 different questions at once: bounded, and the human reads one line about them.
func TestFlood(t *testing.T) {
	var notices, asked, maxOpen int
	q := NewQueue(Options{Timeout: time.Minute, Notify: func(e Event) {
		switch e.Kind {
		case Notice:
			notices++
		case Asked:
			asked++
			maxOpen++
		case Decided, Gone:
			maxOpen--
		}
		if maxOpen > 32 {
			t.Errorf("%d questions open", maxOpen)
		}
	}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	var mu sync.Mutex
	by := map[string]int{}
	start := time.Now()
	for i := range 10000 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			a := q.Ask(context.Background(), read(fmt.Sprintf("/srv/d%d/x", i)))
			mu.Lock()
			defer mu.Unlock()
			by[a.By]++
			if a.Allow {
				t.Error("allowed")
			}
		}()
	}
	for {
		mu.Lock()
		n := by[ByFlood]
		mu.Unlock()
		if n >= 10000-40 || time.Since(start) > time.Minute {
			break
		}
		time.Sleep(time.Millisecond)
	}
	took := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	q.Close()
	wg.Wait()
	if took > 30*time.Second || asked > 45 || notices < 1 || notices > 4 {
		t.Errorf("took %v, asked %d, notices %d, answers %v", took, asked, notices, by)
	}
	// Most of it is the 10 000 goroutines' own.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("heap grew by %d bytes", grown)
	}
}

func TestDenialsInARowEndTheAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notices, asked int
		q := NewQueue(Options{Notify: func(e Event) {
			switch e.Kind {
			case Notice:
				notices++
			case Asked:
				asked++
			}
		}})
		defer q.Close()
		byFlood := 0
		for i := range 2000 {
			c := ask(q, read(fmt.Sprintf("/srv/d%d/x", i)))
			synctest.Wait()
			if p := q.Pending(); len(p) == 1 {
				time.Sleep(time.Second)
				if err := q.Answer(p[0].ID, Answer{By: ByTTY}); err != nil {
					t.Fatal(err)
				}
			}
			if (<-c).By == ByFlood {
				byFlood++
			}
		}
		if asked != 20 || byFlood != 1980 || notices != 1 {
			t.Fatalf("asked %d, denied unasked %d, notices %d", asked, byFlood, notices)
		}
	})
}

func TestModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if a := <-ask(NewQueue(Options{Mode: DenyAll}), read("/a/b")); a.Allow || a.By != ByPolicy {
			t.Errorf("deny: %+v", a)
		}
		if a := <-ask(NewQueue(Options{Mode: AllowAll}), read("/a/b")); !a.Allow || a.Scope != Once {
			t.Errorf("allow: %+v", a)
		}
		for _, c := range []struct {
			mode Mode
			by   string
			want error
		}{{TTYOnly, BySocket, ErrMode}, {TTYOnly, ByTTY, nil}, {Socket, ByTTY, ErrMode}, {Socket, BySocket, nil},
			{Auto, "", ErrMode}, {Auto, ByTimeout, ErrMode}, {Auto, ByHook, nil}} {
			q := NewQueue(Options{Mode: c.mode})
			ask(q, read("/a/b"))
			if err := q.Answer(one(t, q).ID, Answer{By: c.by}); !errors.Is(err, c.want) {
				t.Errorf("%s by %s: %v, want %v", c.mode, c.by, err, c.want)
			}
			q.Close()
		}
	})
}

func TestCommitErrorLeavesTheQuestionOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := errors.New("org policy denies it")
		q := NewQueue(Options{Commit: func(qu Question, c decide.Consent) error {
			if c.Answer.Allow {
				return no
			}
			return nil
		}})
		defer q.Close()
		c := ask(q, read("/a/b"))
		id := one(t, q).ID
		if err := q.Answer(id, Answer{Allow: true, By: BySocket}); !errors.Is(err, no) {
			t.Fatal(err)
		}
		if err := q.Answer(id, Answer{By: BySocket}); err != nil {
			t.Fatal(err)
		}
		if (<-c).Allow {
			t.Fatal("allowed")
		}
	})
}

func TestRecheckSettlesWhatTheNewRuleCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{Recheck: func(qu Question) (Answer, bool) {
			return Answer{Allow: true}, qu.Path == "/a/b/two"
		}})
		defer q.Close()
		ask(q, read("/a/b/one"))
		id := one(t, q).ID
		two := ask(q, read("/a/b/two"))
		ask(q, read("/a/b/secret"))
		synctest.Wait()
		if err := q.Answer(id, Answer{Allow: true, Scope: Dir, By: BySocket}); err != nil {
			t.Fatal(err)
		}
		if a := <-two; !a.Allow || a.By != ByPolicy {
			t.Fatalf("%+v", a)
		}
		if p := one(t, q); p.Path != "/a/b/secret" {
			t.Fatalf("%+v", p)
		}
	})
}

func TestSlowSubscriberIsCutNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{Burst: 1000})
		defer q.Close()
		slow, _ := q.Subscribe()
		for i := range 300 {
			ctx, cancel := context.WithCancel(t.Context())
			go q.Ask(ctx, read(fmt.Sprintf("/srv/%d/x", i)))
			synctest.Wait()
			cancel()
			synctest.Wait()
			time.Sleep(time.Second)
		}
		n := 0
		for range slow {
			n++
		}
		if n != subscriberEvents {
			t.Fatalf("%d events, then the end", n)
		}
	})
}

func TestCloseDeniesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(Options{})
		c := ask(q, read("/a/b"))
		synctest.Wait()
		q.Close()
		q.Close()
		if a := <-c; a.Allow {
			t.Fatal("allowed")
		}
		if a := <-ask(q, read("/a/c")); a.Allow || a.By != ByGone {
			t.Fatalf("%+v", a)
		}
	})
}

// TestOnceIsForThoseWhoWereShown: an answer for this once is about the accesses that a question was shown with; who has
// joined since, perhaps another process under the same name, is asked about anew, and with the number of those who
// wait.
func TestOnceIsForThoseWhoWereShown(t *testing.T) {
	for _, c := range []struct {
		what   string
		list   bool // the question is listed when all wait
		seen   bool // by who answers
		answer Answer
		first  int // how many the answer settles
	}{
		{"once", false, false, Answer{Allow: true}, 1}, {"once, shown with all", true, true, Answer{Allow: true}, 5},
		{"once, listed for another", true, false, Answer{Allow: true}, 1},
		{"the session", false, false, Answer{Allow: true, Life: ForSession}, 5}, {"no", false, false, Answer{}, 5},
	} {
		q := NewQueue(Options{})
		events, cancel := q.Subscribe()
		answers := make(chan Answer, 5)
		ask := func() {
			go func() { answers <- q.Ask(t.Context(), Question{Exe: "/bin/x", Op: "read", Path: "/h/f"}) }()
		}
		ask()
		id := (<-events).Question.ID
		for range 4 {
			ask()
		}
		waits := func(n int) {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
				q.mu.Lock()
				now := q.waiting
				q.mu.Unlock()
				if now == n {
					return
				}
			}
			t.Fatalf("%s: %d never waited", c.what, n)
		}
		waits(5)
		if c.list {
			if now := q.Pending(); c.seen {
				c.answer.Last = now[0].Last
			}
		}
		c.answer.By = BySocket
		if err := q.Answer(id, c.answer); err != nil {
			t.Fatal(err)
		}
		for range c.first {
			if a := <-answers; a.Allow != c.answer.Allow {
				t.Errorf("%s: %+v", c.what, a)
			}
		}
		waits(5 - c.first)
		open := q.Pending()
		if c.first < 5 && (len(open) != 1 || open[0].Merged != 4 || open[0].ID == id) || c.first == 5 && len(open) != 0 {
			t.Errorf("%s: open are %+v", c.what, open)
		}
		q.Close()
		for range 5 - c.first {
			if a := <-answers; a.Allow {
				t.Errorf("%s: who came later has the answer: %+v", c.what, a)
			}
		}
		cancel()
	}
}
