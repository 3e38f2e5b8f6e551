//go:build linux

package gate

import (
	"errors"
	"os"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/policy"
)

// Between a verdict and its mount a rule can go, and the review of what is mounted does not find it.
func TestTakenBackBeforeItIsMounted(t *testing.T) {
	file := t.TempDir() + "/f"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		allowed, reviewed bool
		life              time.Duration
		want              error
	}{
		"the rule has gone":            {reviewed: true, want: errTakenBack},
		"another rule has gone":        {allowed: true, reviewed: true},
		"nothing was taken back":       {},
		"it goes in a moment anyway":   {reviewed: true, life: onceFor},
		"it is allowed for a while":    {allowed: true, reviewed: true, life: time.Hour},
		"it was allowed for a while":   {reviewed: true, life: time.Hour, want: errTakenBack},
		"nothing was, and for a while": {life: time.Hour},
	} {
		r := policy.Rule{Decision: policy.Deny}
		if c.allowed {
			r.Decision = policy.Allow
		}
		a := arbiter.New(arbiter.Options{Env: decide.Env{Policy: func(policy.Query) (policy.Rule, bool) { return r, true }}})
		g := NewMountGate(&Session{Arbiter: a})
		v := decide.Verdict{Life: decide.Forever}
		switch c.life {
		case onceFor:
			v.Life = decide.LifeOnce
		case time.Hour:
			v.Life, v.Until = decide.Until, time.Now().Add(c.life)
		}
		g.expect(file, v, g.reviewed(0))
		if c.reviewed {
			g.reviewed(1)
		}
		err := g.enter(file, mountGrant{mode: grants.RO}, g.next[file])
		if _, stays := g.grants[file]; !errors.Is(err, c.want) || stays != (c.want == nil) {
			t.Errorf("%s: %v, mounted: %v; want %v", name, err, stays, c.want)
		}
		a.Close()
	}
}
