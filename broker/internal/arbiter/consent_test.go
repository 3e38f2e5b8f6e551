package arbiter

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
)

func (l *log) of(kind string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind == kind {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Op, e.Path, e.Scope)))
		}
	}
	slices.Sort(out)
	return out
}

// crowd has six files of one directory wait, and returns the question that they have become, and what says how
// they ended.
func crowd(t *testing.T, a *Arbiter) (decide.Question, func() map[string]decide.Verdict) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[string]decide.Verdict{}
	for i := range 6 {
		p := fmt.Sprintf("/h/n/f%d", i)
		wg.Go(func() {
			v := a.Ask(t.Context(), read(p))
			mu.Lock()
			defer mu.Unlock()
			got[p] = v
		})
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if p := a.Queue().Pending(); len(p) == 1 && len(p[0].Paths) == 6 {
			return p[0], func() map[string]decide.Verdict { wg.Wait(); return got }
		}
	}
	t.Fatalf("waiting: %+v", a.Queue().Pending())
	return decide.Question{}, nil
}

// TestSeveralFilesAreTheseFiles: what an answer about several files lets through, keeps, stores and records are
// these files.
func TestSeveralFilesAreTheseFiles(t *testing.T) {
	for _, c := range []struct {
		answer prompt.Answer
		grants []string // as they are kept and recorded
		rules  string
		open   []string // of the probes
	}{
		{prompt.Answer{Allow: true}, nil, "", nil},
		{prompt.Answer{Allow: true, Life: prompt.ForSession}, files("read /h/n/f%d file"), "", files("/h/n/f%d")},
		{prompt.Answer{Allow: true, Life: prompt.Forever}, files("read /h/n/f%d file"),
			strings.Join(files("allow read /h/n/f%d"), " "), files("/h/n/f%d")},
		{prompt.Answer{Allow: true, Scope: prompt.Dir}, []string{"read /h/n dir"}, "", append(files("/h/n/f%d"),
			"/h/n/other")},
		{prompt.Answer{Allow: true, Scope: prompt.Tree}, []string{"read /h/n tree"}, "", append(files("/h/n/f%d"),
			"/h/n/other", "/h/n/deep/.env")},
	} {
		var stored []string
		a, l := start(t, Options{Store: func(_ string, rules []policy.Rule) error {
			for _, r := range rules {
				stored = append(stored, r.String())
			}
			return nil
		}})
		q, end := crowd(t, a)
		c.answer.By = prompt.BySocket
		if err := a.Queue().Answer(q.ID, c.answer); err != nil {
			t.Fatal(err)
		}
		for p, v := range end() {
			if v.Decision != decide.Allow {
				t.Errorf("%+v: %s: %+v", c.answer, p, v)
			}
		}
		if got := l.of(audit.KindGrant); !slices.Equal(got, c.grants) {
			t.Errorf("%+v: recorded %q, want %q", c.answer, got, c.grants)
		}
		if got := strings.Join(stored, " "); got != c.rules {
			t.Errorf("%+v: stored %q, want %q", c.answer, got, c.rules)
		}
		var open []string
		for _, p := range append(files("/h/n/f%d"), "/h/n/other", "/h/n/deep/.env", "/h/m") {
			if a.Current(read(p)).Decision == decide.Allow {
				open = append(open, p)
			}
		}
		if !slices.Equal(open, c.open) {
			t.Errorf("%+v: open are %q, want %q", c.answer, open, c.open)
		}
	}
}

func files(format string) (out []string) {
	for i := range 6 {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

// TestWhoJoinsLaterIsShownOrAskedApart: an answer to what was shown before somebody joined settles nothing.
func TestWhoJoinsLaterIsShownOrAskedApart(t *testing.T) {
	a, _ := start(t, Options{})
	q, end := crowd(t, a)
	late := make(chan decide.Verdict, 1)
	go func() { late <- a.Ask(t.Context(), read("/h/n/.env")) }()
	var now []prompt.Question
	for ok := false; !ok; time.Sleep(time.Millisecond) {
		now = a.Queue().Pending()
		ok = slices.ContainsFunc(now, func(q prompt.Question) bool {
			return slices.ContainsFunc(q.Objects(), func(n prompt.Name) bool { return n.Path == "/h/n/.env" })
		})
	}
	answer := prompt.Answer{Allow: true, Life: prompt.ForSession, By: prompt.BySocket}
	if err := a.Queue().Answer(q.ID, answer); err == nil {
		t.Error("the question as it was before was answered")
	}
	if v := a.Current(read("/h/n/.env")); v.Decision == decide.Allow {
		t.Errorf("%+v", v)
	}
	for _, q := range now {
		if err := a.Queue().Answer(q.ID, prompt.Answer{By: prompt.BySocket}); err != nil {
			t.Error(err)
		}
	}
	end()
	if v := <-late; v.Decision != decide.Deny {
		t.Errorf("%+v", v)
	}
}

// TestOnceIsNoOthers: neither another process, nor one that has the number of the first later, nor a child has
// what was allowed once.
func TestOnceIsNoOthers(t *testing.T) {
	began := uint64(1)
	a, l := start(t, Options{Process: func(tid int) (int, uint64) { return tid / 10, began }})
	asked := answerer(a, yes("", ""))
	list := func(pid int) decide.Ask {
		return decide.Ask{PID: pid, Exe: "/usr/bin/ls", Op: "list", Kind: policy.KindPath, Path: "/h/n",
			Flags: []string{"dir"}}
	}
	look := read("/h/f")
	look.Op, look.PID = "stat", 70
	for i, c := range []struct {
		what  string
		q     decide.Ask
		began uint64
		asked int32
	}{
		{"the first", list(70), 1, 1}, {"another", list(80), 1, 2}, {"its number, later", list(71), 2, 3},
		{"a look", look, 2, 4}, {"and the open after it", func() decide.Ask { q := look; q.Op = "read"; return q }(), 2, 4},
		{"the open of who has its number later", func() decide.Ask { q := look; q.Op = "read"; return q }(), 3, 5},
	} {
		began = c.began
		if v := a.Ask(t.Context(), c.q); v.Decision != decide.Allow || asked.Load() != c.asked {
			t.Errorf("%d, %s: %+v, asked %d times, want %d", i, c.what, v, asked.Load(), c.asked)
		}
	}
	if got := len(a.grants.List(a.opt.Now())); got != 0 {
		t.Errorf("%d grants are kept", got)
	}
	if got := l.of(audit.KindAllow); len(got) < 2 || got[0] != "list /h/n once" {
		t.Errorf("recorded %q", got)
	}
}

// TestNoIsWhatItWas: a no to something that a program goes through is on record as a no to that, and to each further
// one as a part of the walk; the directory was not refused, and other programs are asked.
func TestNoIsWhatItWas(t *testing.T) {
	a, l := start(t, Options{})
	asked := answerer(a, no)
	walk := func(pid int, p string) decide.Ask {
		q := read(p)
		q.PID, q.Walk = pid, "/h"
		return q
	}
	for i := range 5 {
		v := a.Ask(t.Context(), walk(7, fmt.Sprintf("/h/f%d", i)))
		if want := "refused with the rest of its walk through /h"; v.Decision != decide.Deny || i > 0 && v.Reason != want {
			t.Errorf("%+v", v)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	if got := strings.Join(l.of(audit.KindDeny), ","); got != "read /h/f0,read /h/f1,read /h/f2,read /h/f3,read /h/f4" {
		t.Errorf("recorded %s", got)
	}
	for _, q := range []decide.Ask{walk(8, "/h/f1"), read("/h/g")} {
		n := asked.Load()
		if a.Ask(t.Context(), q); asked.Load() != n+1 {
			t.Errorf("%+v was not asked about", q)
		}
	}
}
