package arbiter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
)

// log is a Recorder in memory.
type log struct {
	mu     sync.Mutex
	events []audit.Event
	synced int
	fail   error

	often audit.Often
}

func (l *log) Note(e audit.Event) (audit.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return audit.Event{}, l.fail
	}
	l.events = append(l.events, e)
	return e, nil
}

func (l *log) Often(e audit.Event) (audit.Event, error) { return l.often.Put(e, l.Note) }
func (l *log) Soon(e audit.Event) (audit.Event, error)  { return l.Append(e) }
func (l *log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fail
}

func (l *log) Later(e audit.Event) (audit.Event, error) { return l.Append(e) }

func (l *log) Append(e audit.Event) (audit.Event, error) {
	e, err := l.Note(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced++
	return e, err
}

func (l *log) kinds() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var k []string
	for _, e := range l.events {
		k = append(k, e.Kind)
	}
	return strings.Join(k, " ")
}

// answerer answers every question with what say returns.
func answerer(a *Arbiter, say func(prompt.Question) (prompt.Answer, bool)) (asked *atomic.Int32) {
	asked = new(atomic.Int32)
	events, _ := a.Queue().Subscribe()
	go func() {
		for ev := range events {
			if ev.Kind != prompt.Asked {
				continue
			}
			asked.Add(1)
			if ans, ok := say(ev.Question); ok {
				ans.By = prompt.BySocket
				_ = a.Queue().Answer(ev.Question.ID, ans)
			}
		}
	}()
	return asked
}

func yes(s prompt.Scope, l prompt.Life) func(prompt.Question) (prompt.Answer, bool) {
	return func(prompt.Question) (prompt.Answer, bool) {
		return prompt.Answer{Allow: true, Scope: s, Life: l}, true
	}
}

func no(prompt.Question) (prompt.Answer, bool) { return prompt.Answer{}, true }

func read(p string) decide.Ask {
	return decide.Ask{PID: 7, Exe: "/usr/bin/cat", Op: "read", Kind: policy.KindPath, Path: p}
}

func rules(t *testing.T, list ...policy.Rule) func(policy.Query) (policy.Rule, bool) {
	t.Helper()
	var s policy.Store
	for _, r := range list {
		r, err := policy.NewRule(r, policy.Vars{Home: "/home/u"})
		if err != nil {
			t.Fatal(err)
		}
		s = s.With(policy.ScopeUser, r)
	}
	return s.Match
}

func start(t *testing.T, o Options) (*Arbiter, *log) {
	t.Helper()
	l := &log{}
	if o.Record == nil {
		o.Record = l
	}
	if o.Prompt.Timeout == 0 {
		o.Prompt.Timeout = time.Minute
	}
	a := New(o)
	t.Cleanup(a.Close)
	return a, l
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name        string
		say         func(prompt.Question) (prompt.Answer, bool)
		first, next string // paths; next comes from another process
		ok, nextOK  bool
		asked       int32
	}{
		{"once is for one access", yes("", ""), "/h/a/f", "/h/a/f", true, true, 2},
		{"session, file", yes(prompt.File, prompt.ForSession), "/h/a/f", "/h/a/f", true, true, 1},
		{"session, file, its neighbour", yes(prompt.File, prompt.ForSession), "/h/a/f", "/h/a/g", true, true, 2},
		{"session, dir", yes(prompt.Dir, prompt.ForSession), "/h/a/f", "/h/a/g", true, true, 1},
		{"session, dir, below", yes(prompt.Dir, prompt.ForSession), "/h/a/f", "/h/a/b/g", true, true, 2},
		{"session, tree", yes(prompt.Tree, prompt.ForSession), "/h/a/f", "/h/a/b/g", true, true, 1},
		{"no", no, "/h/a/f", "/h/a/f", false, false, 2},
		{"never", func(prompt.Question) (prompt.Answer, bool) {
			return prompt.Answer{Scope: prompt.File, Life: prompt.ForSession}, true
		}, "/h/a/f", "/h/a/f", false, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, l := start(t, Options{})
			asked := answerer(a, c.say)
			v := a.Ask(t.Context(), read(c.first))
			q := read(c.next)
			q.PID = 8
			w := a.Ask(t.Context(), q)
			if (v.Decision == decide.Allow) != c.ok || (w.Decision == decide.Allow) != c.nextOK || asked.Load() != c.asked {
				t.Errorf("got %v (%s), %v (%s), asked %d times", v.Decision, v.Reason, w.Decision, w.Reason, asked.Load())
			}
			if !c.ok && v.Errno != int(syscall.EACCES) {
				t.Errorf("errno %d", v.Errno)
			}
			if l.kinds() == "" {
				t.Error("nothing was recorded")
			}
		})
	}
}

// The look that comes before an open, and the one after it, belong to one answer; a second open does not.
func TestOnceCoversTheLooksAround(t *testing.T) {
	a, _ := start(t, Options{Process: func(tid int) (int, uint64) { return tid / 10, 0 }})
	asked := answerer(a, yes("", ""))
	for i, op := range []string{"stat", "stat", "read", "stat", "read"} {
		q := read("/h/f")
		q.Op, q.PID = op, 70+i
		if v := a.Ask(t.Context(), q); v.Decision != decide.Allow {
			t.Fatalf("%s: %s", op, v.Reason)
		}
		want := int32(1)
		if i == 4 {
			want = 2
		}
		if asked.Load() != want {
			t.Fatalf("after %d accesses %d questions", i+1, asked.Load())
		}
	}
	q := read("/h/f") // another process
	q.PID = 90
	a.Ask(t.Context(), q)
	if asked.Load() != 3 {
		t.Errorf("another process rode on the answer")
	}
}

func TestWhatCannotBeRecordedIsRefused(t *testing.T) {
	l := &log{fail: errors.New("disk full")}
	a, _ := start(t, Options{Record: l, Env: decide.Env{Policy: rules(t, policy.Rule{Kind: policy.KindPath,
		Pattern: "/ruled/**", Decision: policy.Allow})}})
	answerer(a, yes("", ""))
	for _, p := range []string{"/h/f", "/ruled/f", "/ruled/f"} { // again, too
		if v := a.Ask(t.Context(), read(p)); v.Decision != decide.Deny || !strings.Contains(v.Reason, "disk full") {
			t.Errorf("%s: %v %s", p, v.Decision, v.Reason)
		}
	}
	// An answer that lasts is refused to whoever gives it, and does not hold afterwards.
	events, _ := a.Queue().Subscribe()
	go a.Ask(context.Background(), read("/h/g"))
	ev := <-events
	if err := a.Queue().Answer(ev.Question.ID, prompt.Answer{Allow: true, Scope: prompt.File, Life: prompt.ForSession,
		By: prompt.ByTTY}); err == nil {
		t.Error("an answer that could not be recorded was taken")
	}
	if n := len(a.grants.List(a.opt.Now())); n != 0 {
		t.Errorf("%d answers hold", n)
	}
	b := New(Options{})
	defer b.Close()
	if v := b.Ask(t.Context(), read("/h/f")); v.Decision != decide.Deny {
		t.Error("without a record something was allowed")
	}
}

func TestHiddenAndProbesAreNotAsked(t *testing.T) {
	h := policy.Effective{Vars: policy.Vars{Home: "/home/u"}}.Concealed()
	a, l := start(t, Options{Env: decide.Env{Hidden: h}})
	asked := answerer(a, yes("", ""))
	v := a.Ask(t.Context(), read("/home/u/.ssh/id_ed25519"))
	if v.Decision != decide.Deny || v.Errno != int(syscall.ENOENT) {
		t.Errorf("secret: %v errno %d", v.Decision, v.Errno)
	}
	if v := a.Ask(t.Context(), read("/etc/ld.so.preload")); v.Decision != decide.Deny || !v.Silent {
		t.Errorf("probe: %+v", v)
	}
	if asked.Load() != 0 || l.kinds() != "deny" {
		t.Errorf("asked %d times, recorded %q", asked.Load(), l.kinds())
	}
}

func TestStoredAnswers(t *testing.T) {
	var stored []policy.Rule
	var where string
	refuse := errors.New("the project is not trusted")
	a, _ := start(t, Options{Store: func(store string, r []policy.Rule) error {
		if store == "project" {
			return refuse
		}
		where, stored = store, append(stored, r...)
		return nil
	}})
	events, _ := a.Queue().Subscribe()
	q := read("/h/link")
	q.Target = "/h/data/f"
	done := make(chan decide.Verdict)
	go func() { done <- a.Ask(context.Background(), q) }()
	id := (<-events).Question.ID
	ans := prompt.Answer{Allow: true, Scope: prompt.Dir, Life: prompt.Forever, Persist: "project", By: prompt.ByTTY}
	if err := a.Queue().Answer(id, ans); !errors.Is(err, refuse) {
		t.Fatalf("answer: %v", err)
	}
	ans.Persist = "user"
	if err := a.Queue().Answer(id, ans); err != nil {
		t.Fatal(err)
	}
	if v := <-done; v.Decision != decide.Allow {
		t.Fatal(v.Reason)
	}
	if where != "user" || len(stored) != 2 || stored[0].String() != "allow read /h/data/*" ||
		stored[1].String() != "allow read /h/link" {
		t.Errorf("stored in %s: %v", where, stored)
	}
	// The same link, and another name in the directory, from another process: no question.
	q.PID = 9
	if v := a.Ask(t.Context(), q); v.Decision != decide.Allow {
		t.Errorf("the link again: %s", v.Reason)
	}
	if v := a.Ask(t.Context(), read("/h/data/g")); v.Decision != decide.Allow {
		t.Errorf("its neighbour: %s", v.Reason)
	}
}

func TestRulesThatChangeWhileAQuestionWaits(t *testing.T) {
	var now atomic.Pointer[decide.Env]
	now.Store(&decide.Env{})
	var broken atomic.Bool
	var last *decide.Env
	var mu sync.Mutex
	a, _ := start(t, Options{Fresh: func() (decide.Env, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		e := now.Load()
		changed := e != last
		last = e
		if broken.Load() {
			return decide.Env{}, false, errors.New("line 3: what is this")
		}
		return *e, changed, nil
	}})
	asked := answerer(a, func(prompt.Question) (prompt.Answer, bool) { return prompt.Answer{}, false })
	done := make(chan decide.Verdict, 1)
	go func() { done <- a.Ask(context.Background(), read("/h/f")) }()
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	now.Store(&decide.Env{Policy: rules(t, policy.Rule{Kind: policy.KindPath, Pattern: "/h/*", Decision: policy.Allow})})
	if v := <-done; v.Decision != decide.Allow {
		t.Fatalf("a rule came, and the question was settled by: %s", v.Reason)
	}
	if v := a.Ask(t.Context(), read("/h/g")); v.Decision != decide.Allow || asked.Load() != 1 {
		t.Errorf("%v %s, asked %d times", v.Decision, v.Reason, asked.Load())
	}
	// Files that cannot be read any more allow nothing by themselves, and who follows them hears that once.
	seen := a.Refreshed()
	broken.Store(true)
	if once, twice := a.Refreshed(), a.Refreshed(); once != seen+1 || twice != once {
		t.Errorf("%d changes, then %d and %d", seen, once, twice)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if v := a.Ask(ctx, read("/h/i")); v.Decision == decide.Allow {
		t.Error("a rule of a file that cannot be read allowed something")
	}
}

func TestWhatWasReadLastCounts(t *testing.T) {
	var read atomic.Int64
	a, _ := start(t, Options{Fresh: func() (decide.Env, bool, error) {
		r := policy.Rule{Decision: policy.Allow, Reason: fmt.Sprint(read.Add(1))}
		for range 8 { // here another may read, and be quicker
			runtime.Gosched()
		}
		return decide.Env{Policy: func(policy.Query) (policy.Rule, bool) { return r, true }}, true, nil
	}})
	for range 200 {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { a.Refreshed() })
		}
		wg.Wait()
		env, _ := a.environment()
		if r, _ := env.Policy(policy.Query{}); r.Reason != fmt.Sprint(read.Load()) {
			t.Fatalf("the policy files as they were read the %sth time count, of %d", r.Reason, read.Load())
		}
	}
}

func TestManyWaitForOneQuestion(t *testing.T) {
	a, _ := start(t, Options{})
	const n = 100
	asked := answerer(a, func(q prompt.Question) (prompt.Answer, bool) {
		for {
			if p := a.Queue().Pending(); len(p) == 1 && p[0].Merged == n {
				return prompt.Answer{Allow: true, Last: p[0].Last}, true
			}
			time.Sleep(time.Millisecond)
		}
	})
	var ok atomic.Int32
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			q := read("/h/f")
			q.PID = 100 + i
			if a.Ask(context.Background(), q).Decision == decide.Allow {
				ok.Add(1)
			}
		})
	}
	wg.Wait()
	if asked.Load() != 1 || ok.Load() != n {
		t.Errorf("%d questions, %d successes", asked.Load(), ok.Load())
	}
}

func TestFlood(t *testing.T) {
	a, l := start(t, Options{})
	answerer(a, func(prompt.Question) (prompt.Answer, bool) { return prompt.Answer{}, false })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var denied atomic.Int32
	const n = 10000
	for i := range n {
		wg.Go(func() {
			if v := a.Ask(ctx, read(fmt.Sprintf("/h/d%d/f", i))); v.Decision == decide.Deny {
				denied.Add(1)
			}
		})
	}
	for end := time.Now().Add(time.Minute); denied.Load() < n-40 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if open := len(a.Queue().Pending()); open > 32 {
		t.Errorf("%d questions are open", open)
	}
	cancel()
	wg.Wait()
	a.Close()
	l.often.Flush(l.Note)
	if denied.Load() != n {
		t.Errorf("%d of %d were denied", denied.Load(), n)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 20<<20 {
		t.Errorf("%d MiB are in use", m.HeapAlloc>>20)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) > 2000 { // 100 a second and the counts, however slow this machine is
		t.Errorf("%d records", len(l.events))
	}
	if !strings.Contains(fmt.Sprint(l.events), "count") {
		t.Error("what was not recorded one by one was not counted")
	}
}

func TestNobodyIsThere(t *testing.T) {
	var there atomic.Bool
	a, _ := start(t, Options{Alone: func() bool { return !there.Load() }, Grace: 100 * time.Millisecond})
	asked := answerer(a, func(prompt.Question) (prompt.Answer, bool) { return prompt.Answer{Allow: true}, there.Load() })
	for i := range 2 { // the first waits for somebody, the second does not
		if v := a.Ask(t.Context(), read(fmt.Sprintf("/h/f%d", i))); v.Decision != decide.Deny ||
			!strings.Contains(v.Reason, "nobody is there") {
			t.Fatalf("%v %s", v.Decision, v.Reason)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("%d questions", asked.Load())
	}
	there.Store(true)
	if v := a.Ask(t.Context(), read("/h/g")); v.Decision != decide.Allow {
		t.Errorf("somebody came: %s", v.Reason)
	}
}

func TestHosts(t *testing.T) {
	a, _ := start(t, Options{})
	asked := answerer(a, yes(prompt.Domain, prompt.ForSession))
	host := func(h string, port int) decide.Ask {
		return decide.Ask{PID: 1, Op: "connect", Kind: policy.KindHost, Host: h, Port: port}
	}
	for i, c := range []struct {
		h    string
		port int
		want int32
	}{{"a.example.com", 443, 1}, {"b.example.com", 443, 1}, {"b.example.com", 22, 2}, {"a.example.org", 443, 3}} {
		if v := a.Ask(t.Context(), host(c.h, c.port)); v.Decision != decide.Allow || asked.Load() != c.want {
			t.Errorf("%d: %v %s, asked %d times", i, v.Decision, v.Reason, asked.Load())
		}
	}
	if a.Revoke(policy.KindHost, "*.example.com") == 0 {
		t.Error("nothing was revoked")
	}
	if a.Ask(t.Context(), host("c.example.com", 443)); asked.Load() != 4 {
		t.Error("a revoked answer held")
	}
}

func TestRevoke(t *testing.T) {
	a, l := start(t, Options{})
	asked := answerer(a, yes(prompt.File, prompt.ForSession))
	a.Ask(t.Context(), read("/h/f"))
	if n := a.Revoke(policy.KindPath, "/h/f"); n != 1 {
		t.Errorf("revoked %d", n)
	}
	q := read("/h/f")
	q.PID = 99
	a.Ask(t.Context(), q)
	if asked.Load() != 2 || !strings.Contains(l.kinds(), "revoke") {
		t.Errorf("asked %d times, recorded %s", asked.Load(), l.kinds())
	}
}

// A waiter must not ride on an answer about a lesser right: two accesses make one question only if they need the same.
func TestRightsAreNotMixed(t *testing.T) {
	ops := []string{"read", "stat", "readlink", "exec", "write", "create", "truncate", "unlink", "rename", "link",
		"mkdir", "symlink", "mknod", "chmod", "chown", "utime", "xattr", "connect", "bind", "nonsense"}
	for _, op := range ops {
		a := read("/h/f")
		a.Op = op
		q := questionOf(a, decide.Verdict{}, decide.Env{})
		back := q.Asks()[0]
		if want, got := access(a), access(back); want != got {
			t.Errorf("%s needs %s and is asked as %s, which is %s", op, want, q.Op, got)
		}
	}
}

func access(a decide.Ask) policy.Access {
	switch acc := policy.AccessOf(a.Op); {
	case a.Kind == policy.KindSocket:
		return policy.Connect
	case acc == policy.Connect:
		return policy.Write
	default:
		return acc
	}
}

func TestClose(t *testing.T) {
	a, _ := start(t, Options{})
	done := make(chan decide.Verdict, 1)
	go func() { done <- a.Ask(context.Background(), read("/h/f")) }()
	for len(a.Queue().Pending()) == 0 {
		time.Sleep(time.Millisecond)
	}
	a.Close()
	if v := <-done; v.Decision != decide.Deny {
		t.Error("the end of the session allowed something")
	}
	if v := a.Ask(t.Context(), read("/h/f")); v.Decision != decide.Deny {
		t.Error("something was allowed after the end")
	}
}
