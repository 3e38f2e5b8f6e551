package arbiter

import (
	"errors"
	"testing"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
)

// TestEachOpenOfSecretIsRecorded: a program that opens a secret again has each open on record, up to a hundred a
// second; the others are counted. Of what is no secret the first stands for all.
func TestEachOpenOfSecretIsRecorded(t *testing.T) {
	now := time.Unix(1000, 0)
	env := asking()
	env.Policy = rules(t, policy.Rule{Kind: policy.KindPath, Pattern: "/ruled/**", Decision: policy.Allow})
	a, log := start(t, Options{Env: env, Now: func() time.Time { return now }})
	answer := decide.Answer{Allow: true, Scope: decide.Revealed, Life: decide.Session}
	if err := a.Reveal(netrc, answer); err != nil {
		t.Fatal(err)
	}
	opens := func(path string, n int) (recorded int, counted string) {
		before := len(log.events)
		for range n {
			if v := a.Ask(t.Context(), read(path)); v.Decision != decide.Allow {
				t.Fatalf("%s: %v %s", path, v.Decision, v.Reason)
			}
		}
		now = now.Add(time.Second)
		_ = a.Ask(t.Context(), read(netrc))
		for _, e := range log.events[before : len(log.events)-1] {
			switch {
			case e.Kind == audit.KindAllow && e.Path == path:
				recorded++
			case e.Reason == "opens of secrets beyond 100 or 64 KiB a second":
				counted = e.Detail[0].V
			}
		}
		return recorded, counted
	}
	for _, c := range []struct {
		path    string
		n, want int
		counted string
		what    string
	}{
		{netrc, 5, 5, "", "a secret"},
		{netrc, 150, 99, "51", "a secret, too often"}, // one was opened in this second before
		{"/ruled/f", 5, 1, "", "what is no secret"},
	} {
		if got, counted := opens(c.path, c.n); got != c.want || counted != c.counted {
			t.Errorf("%s: %d of %d opens are on record and %q counted, want %d and %q", c.what, got, c.n, counted, c.want,
				c.counted)
		}
	}
}

// TestRepeatNeedsWholeRecord: what was allowed and is on record goes on without another one only while the record is
// whole, and what could not be written down counts as never seen.
func TestRepeatNeedsWholeRecord(t *testing.T) {
	a, log := start(t, Options{Env: decide.Env{Policy: rules(t, policy.Rule{Kind: policy.KindPath, Pattern: "/ruled/**",
		Decision: policy.Allow})}})
	asks := func(want decide.Decision, when string) {
		t.Helper()
		if v := a.Ask(t.Context(), read("/ruled/f")); v.Decision != want {
			t.Errorf("%s: %v %s", when, v.Decision, v.Reason)
		}
	}
	asks(decide.Allow, "first")
	asks(decide.Allow, "again")
	log.mu.Lock()
	log.fail = errors.New("disk full")
	log.mu.Unlock()
	asks(decide.Deny, "again, and nothing can be recorded")
	log.mu.Lock()
	log.fail = nil
	log.mu.Unlock()
	before := len(log.events)
	asks(decide.Allow, "again, and it can")
	if len(log.events) != before+1 {
		t.Error("what came after a failure is not on record")
	}
}
