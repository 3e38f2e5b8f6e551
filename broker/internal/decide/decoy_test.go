package decide

import (
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy"
)

// TestDecoy: nothing but an answer to this question lets a session go on after a decoy was touched.
func TestDecoy(t *testing.T) {
	now := time.Now()
	a := DecoyAsk(7, "/h/.netrc", "it was opened")
	allow, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: "/h/**", Decision: policy.Allow},
		policy.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  Env
		want Decision
	}{
		"asked":              {Env{}, AskHuman},
		"allowed by a rule":  {Env{Policy: policy.Store{}.With(policy.ScopeUser, allow).Match}, AskHuman},
		"granted":            {Env{Files: func(string) bool { return true }}, AskHuman},
		"static":             {Env{Static: true}, Deny},
		"--prompt allow":     {Env{NoPrompt: true, Unasked: Allow}, Deny},
		"nobody to be asked": {Env{NoPrompt: true}, Deny},
	} {
		c.env.Now, c.env.Grants = now, NewGrants()
		if v := Decide(a, c.env); v.Decision != c.want {
			t.Errorf("%s: %v, want %v", name, v.Decision, c.want)
		}
	}
	q := Question{Path: a.Path, Op: a.Op}
	for _, ans := range []Answer{{Allow: true, Life: Session}, {Allow: true, Life: Forever}, {Allow: true, Scope: Tree},
		{Allow: true, Life: Hour}} {
		if _, err := Means(&q, ans, now); err == nil {
			t.Errorf("%+v lets it go on for longer than this once", ans)
		}
	}
	if c, err := Means(&q, Answer{Allow: true}, now); err != nil || len(c.Covers) > 0 {
		t.Errorf("a yes for this once covers %v (%v)", c.Covers, err)
	}
	if q.Group() != "" {
		t.Error("it is asked about together with something else")
	}
}
