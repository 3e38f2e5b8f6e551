package arbiter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
)

// labelled is a session's policy in which everything is allowed, three places are labelled and some of those outside
// accept something.
func labelled(t *testing.T) decide.Env {
	t.Helper()
	var s policy.Store
	for _, r := range []policy.Rule{
		{Kind: policy.KindPath, Pattern: "/c/a/**", Label: "a"},
		{Kind: policy.KindPath, Pattern: "/c/b/**", Label: "b"},
		{Kind: policy.KindPath, Pattern: "/c/ab/**", Label: "a"},
		{Kind: policy.KindPath, Pattern: "/c/ab/*", Label: "b"},
		{Kind: policy.KindPath, Pattern: "/n/**"},
		{Kind: policy.KindHost, Pattern: "none.test"},
		{Kind: policy.KindHost, Pattern: "a.test", Accepts: []string{"a"}},
		{Kind: policy.KindHost, Pattern: "b.test", Accepts: []string{"b"}},
		{Kind: policy.KindHost, Pattern: "all.test", Accepts: []string{"*"}},
		{Kind: policy.KindSocket, Pattern: "/s/none"},
		{Kind: policy.KindSocket, Pattern: "/s/a", Accepts: []string{"a"}},
	} {
		r.Decision = policy.Allow
		r, err := policy.NewRule(r, policy.Vars{})
		if err != nil {
			t.Fatal(err)
		}
		s = s.With(policy.ScopeUser, r)
	}
	return decide.Env{Policy: s.Match, Restricts: s.Restricts,
		Labels: &decide.Labels{Of: s.LabelsOf, Unheard: s.Unheard}}
}

// askFor is about what the tables of the model name.
func askFor(what string) decide.Ask {
	switch {
	case strings.HasPrefix(what, "/s/"):
		return decide.Ask{PID: 7, Exe: "/usr/bin/nc", Op: "connect", Kind: policy.KindSocket, Path: what}
	case strings.HasPrefix(what, "/"):
		return decide.Ask{PID: 7, Exe: "/usr/bin/cat", Op: "read", Kind: policy.KindPath, Path: what}
	}
	return contact(what)
}

func contact(host string) decide.Ask {
	return decide.Ask{PID: 7, Exe: "/usr/bin/curl", Op: "connect", Kind: policy.KindHost, Host: host, Port: 443}
}

// model says in the shortest words what has to be asked. It shares nothing with what is tested.
type model struct{ carried, contacts, answered map[string]string }

var (
	labelsOf = [...][2]string{{"/c/a/1", "a"}, {"/c/a/2", "a"}, {"/c/b/1", "b"}, {"/c/ab/1", "ab"}, {"/n/1", ""}}
	accepted = [...][2]string{{"none.test", ""}, {"a.test", "a"}, {"b.test", "b"}, {"all.test", "ab"}, {"/s/none", ""},
		{"/s/a", "a"}}
)

func lookup(table [][2]string, name string) string {
	for _, row := range table {
		if row[0] == name {
			return row[1]
		}
	}
	return ""
}

// minus are the letters of a that b lacks.
func minus(a, b string) (out string) {
	for _, c := range a {
		if !strings.ContainsRune(b, c) {
			out += string(c)
		}
	}
	return out
}

func newModel() *model { return &model{map[string]string{}, map[string]string{}, map[string]string{}} }

// step says whether an access is asked about, and changes the model as the answer says: no, once or session.
func (m *model) step(what, answer string) (asked bool) {
	if !slices.ContainsFunc(accepted[:], func(row [2]string) bool { return row[0] == what }) {
		fresh := minus(lookup(labelsOf[:], what), m.carried[""])
		for who := range m.contacts {
			asked = asked || minus(fresh, lookup(accepted[:], who)) != ""
		}
		if fresh != "" && (!asked || answer != "no") {
			m.carried[""] += fresh
			maps.DeleteFunc(m.contacts, func(who, _ string) bool { return who[0] != '/' }) // they are held, or cut
		}
		return asked
	}
	missing := minus(m.carried[""], lookup(accepted[:], what))
	asked = minus(missing, m.answered[what]) != ""
	if asked && answer == "session" {
		m.answered[what] = missing
	}
	if !asked || answer != "no" {
		m.contacts[what] = "now"
	}
	return asked
}

// TestInterleavings: reading then sending asks, sending then reading asks, neither alone does, whatever the order.
func TestInterleavings(t *testing.T) {
	both := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 23))
		m := newModel()
		var contacts []decide.Contact
		now, answer := time.Unix(1e9, 0), ""
		a, _ := start(t, Options{Env: labelled(t), Now: func() time.Time { return now },
			Contact:  func() []decide.Contact { return contacts },
			Labelled: func() error { contacts = nil; return nil }})
		asked := answerer(a, func(prompt.Question) (prompt.Answer, bool) {
			switch answer {
			case "once":
				return prompt.Answer{Allow: true}, true
			case "session":
				return prompt.Answer{Allow: true, Life: prompt.ForSession}, true
			}
			return prompt.Answer{}, true
		})
		var story []string
		for range 12 {
			now = now.Add(time.Minute) // what was answered a moment ago is forgotten
			answer = [...]string{"no", "once", "session"}[r.IntN(3)]
			what := accepted[r.IntN(len(accepted))][0]
			if r.IntN(2) == 0 {
				what = labelsOf[r.IntN(len(labelsOf))][0]
			}
			before := asked.Load()
			v := a.Ask(t.Context(), askFor(what))
			if c := (decide.Contact{Kind: policy.KindHost, Name: what, Port: 443}); what[0] != '/' &&
				v.Decision == decide.Allow && !slices.Contains(contacts, c) {
				contacts = append(contacts, c)
			}
			want := m.step(what, answer)
			story = append(story, fmt.Sprintf("%s (%s): asked %t", what, answer, want))
			if got := asked.Load() > before; got != want || (v.Decision == decide.Allow) != (!want || answer != "no") {
				t.Fatalf("seed %d: %s\nasked %t, %v: %s", seed, strings.Join(story, "\n"), got, v.Decision, v.Reason)
			}
			if want {
				both++
			}
		}
	}
	if both < 1000 {
		t.Errorf("%d questions in all: the stories are too dull", both)
	}
}

// TestInterleavingsAtOnce: of accesses at the same moment all are asked about that would be if they had come one after
// the other, in some order. A read and a contact do not both pass because neither knew of the other.
func TestInterleavingsAtOnce(t *testing.T) {
	both := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 29))
		var names []string
		for _, i := range r.Perm(5)[:2+r.IntN(2)] {
			names = append(names, [...]string{"/c/a/1", "/c/b/1", "/c/ab/1", "/s/none", "/s/a"}[i])
		}
		env := labelled(t)
		var jitter atomic.Uint64 // who is ahead is decided anew wherever an access looks at something
		pause := func() {
			for range jitter.Add(seed*2654435761+1) >> 7 % 32 {
				runtime.Gosched()
			}
		}
		match, of := env.Policy, env.Labels.Of
		env.Policy = func(q policy.Query) (policy.Rule, bool) { pause(); return match(q) }
		env.Labels.Of = func(p string, tree bool, now time.Time) []string { pause(); return of(p, tree, now) }
		a, _ := start(t, Options{Env: env, Labelled: func() error { pause(); return nil }})
		var about sync.Map
		yes := r.IntN(2) == 0
		answerer(a, func(q prompt.Question) (prompt.Answer, bool) {
			for _, n := range q.Objects() {
				about.Store(n.Path, true)
			}
			return prompt.Answer{Allow: yes}, true
		})
		seen := map[string]string{} // by access: whether it was asked about, and the answer that it got
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, what := range names {
			wg.Go(func() {
				q := askFor(what)
				q.PID += i
				v := a.Ask(context.Background(), q)
				_, asked := about.Load(what)
				mu.Lock()
				defer mu.Unlock()
				seen[what] = fmt.Sprint(asked, " ", map[bool]string{true: "once", false: "no"}[v.Decision == decide.Allow])
			})
		}
		wg.Wait()
		wasAsked := func(what string) bool { return strings.HasPrefix(seen[what], "true") }
		if !inSomeOrder(names, nil, seen, func(asked map[string]bool) bool {
			return !slices.ContainsFunc(names, func(what string) bool { return asked[what] && !wasAsked(what) })
		}) {
			t.Fatalf("seed %d: somebody was not asked: %v", seed, seen)
		}
		for _, what := range names { // two may be asked about at once of which one would have been enough
			if wasAsked(what) && !inSomeOrder(names, nil, seen, func(asked map[string]bool) bool { return asked[what] }) {
				t.Fatalf("seed %d: asked about %s without a reason: %v", seed, what, seen)
			}
		}
		if strings.Contains(fmt.Sprint(seen), "true") {
			both++
		}
	}
	if both < 300 {
		t.Errorf("in %d of the stories somebody was asked: they are too dull", both)
	}
}

// inSomeOrder goes through the orders in which accesses may come, the first ones of which are done, until is holds of
// what the model asks about.
func inSomeOrder(left, done []string, seen map[string]string, is func(asked map[string]bool) bool) bool {
	if len(left) == 0 {
		m, asked := newModel(), map[string]bool{}
		for _, what := range done {
			_, answer, _ := strings.Cut(seen[what], " ")
			asked[what] = m.step(what, answer)
		}
		return is(asked)
	}
	for i, what := range left {
		if inSomeOrder(slices.Delete(slices.Clone(left), i, i+1), append(slices.Clone(done), what), seen, is) {
			return true
		}
	}
	return false
}

// What a label takes is in force before anything is read, also where many read at once; then nobody sends unasked.
func TestLabelsAreInForceBeforeTheRead(t *testing.T) {
	var limited atomic.Bool
	a, log := start(t, Options{Env: labelled(t), Labelled: func() error {
		time.Sleep(10 * time.Millisecond) // the control: without the wait for it a reader is ahead
		limited.Store(true)
		return nil
	}})
	asked := answerer(a, no)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			q := read("/c/a/" + fmt.Sprint(i%3))
			if v := a.Ask(context.Background(), q); v.Decision != decide.Allow || !limited.Load() {
				t.Errorf("read: %v (%s), in force %t", v.Decision, v.Reason, limited.Load())
			}
			if v := a.Ask(context.Background(), contact("none.test")); v.Decision == decide.Allow {
				t.Error("sent without a question")
			}
			if v := a.Ask(context.Background(), contact("a.test")); v.Decision != decide.Allow {
				t.Error("not sent to whom accepts it: " + v.Reason)
			}
		})
	}
	wg.Wait()
	if asked.Load() == 0 {
		t.Error("nobody was asked")
	}
	if n := strings.Count(log.kinds(), audit.KindLabel); n != 1 {
		t.Errorf("%d labels are on record", n)
	}
}

// Where the network cannot be kept from hearing of it, nothing labelled is read.
func TestNothingIsReadThatCannotBeKept(t *testing.T) {
	a, _ := start(t, Options{Env: labelled(t), Labelled: func() error { return errors.New("the rules were refused") }})
	v := a.Ask(t.Context(), read("/c/a/1"))
	if v.Decision != decide.Deny || !strings.Contains(v.Reason, "rules were refused") {
		t.Errorf("%v: %s", v.Decision, v.Reason)
	}
	if v := a.Ask(t.Context(), read("/n/1")); v.Decision != decide.Allow { // the control
		t.Errorf("%v: %s", v.Decision, v.Reason)
	}
}

// What could not be put in force at one read is no more so at the next one: that tries again, and asks about whom the
// session has been in contact with meanwhile.
func TestLabelsThatAreNotInForceYet(t *testing.T) {
	full, tries := true, 0
	var contacts []decide.Contact
	a, log := start(t, Options{Env: labelled(t), Contact: func() []decide.Contact { return contacts },
		Labelled: func() error {
			if tries++; full {
				return errors.New("no space left on device")
			}
			contacts = nil
			return nil
		}})
	answer := prompt.Answer{Allow: true}
	asked := answerer(a, func(prompt.Question) (prompt.Answer, bool) { return answer, true })
	for i := range 3 {
		v := a.Ask(t.Context(), read("/c/a/1"))
		if v.Decision != decide.Deny || !strings.Contains(v.Reason, "no space left") || tries != i+1 {
			t.Errorf("read %d: %v: %s, tried %d times", i+1, v.Decision, v.Reason, tries)
		}
	}
	if asked.Load() != 0 {
		t.Error("asked without contact")
	}
	contacts = []decide.Contact{{Kind: policy.KindHost, Name: "none.test", Port: 443}}
	if answer = (prompt.Answer{}); a.Ask(t.Context(), read("/c/a/1")).Decision != decide.Deny || asked.Load() != 1 {
		t.Errorf("asked %d times after contact, want once", asked.Load())
	}
	full, contacts = false, nil
	for range 2 { // the control: what is in force is not tried again
		if v := a.Ask(t.Context(), read("/c/a/2")); v.Decision != decide.Allow || tries != 4 {
			t.Errorf("%v: %s, tried %d times, want 4", v.Decision, v.Reason, tries)
		}
	}
	if n := strings.Count(log.kinds(), audit.KindLabel); n != 1 {
		t.Errorf("%d labels are on record", n)
	}
}

// An answer that was given before the session had read something says nothing of that.
func TestAnswerFromBeforeTheRead(t *testing.T) {
	a, _ := start(t, Options{Env: labelled(t)})
	waits := make(chan string, 1)
	events, _ := a.Queue().Subscribe()
	go func() {
		for ev := range events {
			if ev.Kind == prompt.Asked {
				waits <- ev.Question.ID
			}
		}
	}()
	done := make(chan decide.Verdict, 1)
	go func() { done <- a.Ask(context.Background(), contact("unknown.test")) }()
	id := <-waits
	if v := a.Ask(t.Context(), read("/c/a/1")); v.Decision != decide.Allow {
		t.Fatal(v.Reason)
	}
	if err := a.Queue().Answer(id, prompt.Answer{Allow: true, By: prompt.BySocket}); err != nil {
		t.Fatal(err)
	}
	if v := <-done; v.Decision != decide.Deny {
		t.Error("a yes from before the read let it out after that")
	}
}
