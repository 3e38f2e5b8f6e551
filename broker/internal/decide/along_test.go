package decide

import (
	"testing"

	"sbx/broker/internal/policy"
)

// TestAlong: what an answer about all names of the home directory brings along, and what it does not.
func TestAlong(t *testing.T) {
	const user = policy.ScopeUser
	e := env(t, rule(t, user, policy.KindPath, "/home/u/d/no/**", policy.Read, policy.Deny), rule(t, user, policy.KindPath, "/home/u/ask/**", policy.Read, policy.Ask))
	e.Grants.Add(Grant{Kind: policy.KindPath, Name: "/home/u/refused", Access: policy.Read, Scope: File, Life: Session})
	e.Static = true // somebody did answer
	for name, c := range map[string]struct {
		path  string
		dir   bool
		want  Decision
		whole bool
	}{
		"a file":                          {path: "/home/u/d/f", want: Allow},
		"a directory":                     {path: "/home/u/other", dir: true, want: Allow, whole: true},
		"one with something denied in it": {path: "/home/u/d", dir: true, want: Allow},
		"what a rule denies":              {path: "/home/u/d/no/f", want: Deny},
		"what a rule asks about":          {path: "/home/u/ask/f", want: AskHuman},
		"a secret":                        {path: "/home/u/.ssh/id", want: Deny},
		"what was refused":                {path: "/home/u/refused", want: Deny},
	} {
		a := read(c.path)
		a.With = "/home/u"
		if c.dir {
			a.Flags = []string{"dir"}
		}
		if v := Decide(a, e); v.Decision != c.want || v.Whole != c.whole {
			t.Errorf("%s: %v, whole %v (%s), want %v, %v", name, v.Decision, v.Whole, v.Reason, c.want, c.whole)
		}
		a.With = ""
		if v := Decide(a, e); v.Decision == Allow {
			t.Errorf("%s: allowed without the answer", name)
		}
	}
	// A rule that asks about all of the home directory has just been answered.
	e = env(t, rule(t, user, policy.KindPath, "/home/u/**", policy.Read, policy.Ask))
	a := read("/home/u/d/f")
	if a.With = "/home/u/d"; Decide(a, e).Decision != Allow {
		t.Errorf("asked about twice: %+v", Decide(a, e))
	}
}
