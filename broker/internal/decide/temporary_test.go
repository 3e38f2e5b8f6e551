package decide

import (
	"testing"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// TestTemporary: a temporary name is allowed for the file that may be written, and for nothing else that is said.
func TestTemporary(t *testing.T) {
	around, err := pathname.ParsePattern("/h/**", policy.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	rules := func(list ...policy.Rule) func(policy.Query) (policy.Rule, bool) {
		var store policy.Store
		for i := range list {
			list[i].Kind, list[i].Origin.Scope = policy.KindPath, policy.ScopeUser
			r, err := policy.NewRule(list[i], policy.Vars{})
			if err != nil {
				t.Fatal(err)
			}
			list[i] = r
		}
		return store.With(policy.ScopeUser, list...).Match
	}
	rule := func(p string, a policy.Access, d policy.Decision) policy.Rule {
		return policy.Rule{Pattern: p, Access: a, Decision: d}
	}
	granted := rules(rule("/h/f", policy.Write, policy.Allow))
	option := func(p string) bool { return p == "/h/f" }
	ask := Ask{Op: "write", Kind: policy.KindPath, Path: "/h/f.tmp.1", Of: []string{"/h/x", "/h/f"}}
	with := func(edit func(*Ask)) Ask {
		a := ask
		edit(&a)
		return a
	}
	for name, row := range map[string]struct {
		ask  Ask
		env  Env
		want Decision
	}{
		"by a rule":             {ask, Env{Policy: granted}, Allow},
		"by an option":          {ask, Env{Files: option}, Allow},
		"read again":            {with(func(a *Ask) { a.Op = "read" }), Env{Files: option}, Allow},
		"asked about around it": {ask, Env{Files: option, Asks: []pathname.Pattern{around}}, Allow},
		"of nothing":            {with(func(a *Ask) { a.Of = nil }), Env{Policy: granted}, AskHuman},
		"of another":            {with(func(a *Ask) { a.Of = []string{"/h/x"} }), Env{Policy: granted}, AskHuman},
		"run":                   {with(func(a *Ask) { a.Kind = policy.KindExec }), Env{Files: option}, AskHuman},
		"only to be read":       {ask, Env{Policy: rules(rule("/h/f", policy.Read, policy.Allow))}, AskHuman},
		"the file asks":         {ask, Env{Policy: rules(rule("/h/f", policy.Write, policy.Ask))}, AskHuman},
		"the file is denied":    {ask, Env{Files: option, Policy: rules(rule("/h/f", policy.Write, policy.Deny))}, AskHuman},
		"the name is denied":    {ask, Env{Files: option, Policy: rules(rule("/h/*.1", policy.Write, policy.Deny))}, Deny},
		"a rule asks":           {ask, Env{Files: option, Policy: rules(rule("/h/*.1", policy.Write, policy.Ask))}, AskHuman},
		"the name acts outside": {ask, Env{Files: option, Acts: acting("/h/f.tmp.1")}, AskHuman},
		"the file acts outside": {ask, Env{Files: option, Acts: acting("/h/f")}, AskHuman},
	} {
		if v := Decide(row.ask, row.env); v.Decision != row.want {
			t.Errorf("%s: %v (%s), want %v", name, v.Decision, v.Reason, row.want)
		}
	}
	v := Decide(ask, Env{Policy: granted})
	if v.Reason != "a temporary name of /h/f, which may be written" || v.Rule == "" || v.Scope != File || v.Life.Lasts() {
		t.Errorf("it says %+v", v)
	}
}

func acting(p string) func(string) string {
	return func(q string) string {
		if p == q {
			return "it is run"
		}
		return ""
	}
}
