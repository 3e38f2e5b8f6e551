package decide

import (
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
)

// labels is an environment with rules that label; carried are the labels that the session carries.
func labels(t *testing.T, list []policy.Rule, carried map[string]string, contacts ...Contact) Env {
	t.Helper()
	var s policy.Store
	for _, r := range list {
		r, err := policy.NewRule(r, policy.Vars{Home: "/h"})
		if err != nil {
			t.Fatal(err)
		}
		s = s.With(policy.ScopeUser, r)
	}
	return Env{Policy: s.Match, Restricts: s.Restricts, Grants: NewGrants(), Labels: &Labels{Of: s.LabelsOf,
		Unheard: s.Unheard, Carried: carried, InForce: carried, Contact: func() []Contact { return contacts }}}
}

func allowing(kind policy.Kind, pattern, label string, accepts ...string) policy.Rule {
	return policy.Rule{Kind: kind, Pattern: pattern, Decision: policy.Allow, Label: label, Accepts: accepts}
}

// An answer about something else opens no labelled place: what is opened up as a whole has no label of its own in it.
func TestTreeStopsAtLabels(t *testing.T) {
	list := []policy.Rule{allowing(policy.KindPath, "/h/**", ""), allowing(policy.KindPath, "/h/c/**", "clients"),
		allowing(policy.KindPath, "/h/c/acme/**", "acme")}
	for _, c := range []struct {
		path    string
		carried []string
		tree    string // that is opened up; "" none
		reads   string
	}{
		{"/h/notes/x", nil, "", ""},
		{"/h/notes/x", []string{"clients", "acme"}, "/h", "acme clients"},
		{"/h/c/x", nil, "", "clients"},
		{"/h/c/x", []string{"acme"}, "/h/c", "acme clients"},
		{"/h/c/acme/x", nil, "/h/c/acme", "acme clients"},
	} {
		carried := map[string]string{}
		for _, label := range c.carried {
			carried[label] = "/h/c"
		}
		e := labels(t, list, carried)
		a := Ask{Op: "read", Kind: policy.KindPath, Path: c.path}
		v := Decide(a, e)
		tree := ""
		if v.Scope == Tree {
			tree = v.Path
		}
		if got := strings.Join(Reads(a, v, e), " "); v.Decision != Allow || tree != c.tree || got != c.reads {
			t.Errorf("%s with %q: %v, tree %q, reads %q, want %q, %q", c.path, c.carried, v.Decision, tree, got, c.tree, c.reads)
		}
	}
}

// Whatever lets an access through by itself asks where a label stands in the way, and nothing else does.
func TestLabelsAsk(t *testing.T) {
	rules := []policy.Rule{allowing(policy.KindPath, "/h/c/**", "clients"), allowing(policy.KindPath, "/h/n/**", ""),
		allowing(policy.KindHost, "deaf.test", ""), allowing(policy.KindHost, "good.test", "", "clients"),
		allowing(policy.KindSocket, "/run/deaf.sock", ""), allowing(policy.KindSocket, "/run/good.sock", "", "clients")}
	host := func(name string) Ask { return Ask{Op: "connect", Kind: policy.KindHost, Host: name, Port: 443} }
	socket := func(p string) Ask { return Ask{Op: "connect", Kind: policy.KindSocket, Path: p} }
	deaf := Contact{Kind: policy.KindHost, Name: "deaf.test", Port: 443}
	carried := map[string]string{"clients": "/h/c/x"}
	lookup := Ask{Op: Lookup, Kind: policy.KindHost, Host: "deaf.test", Port: 443}
	link := Ask{Op: "read", Kind: policy.KindPath, Path: "/h/n/l", Target: "/h/c/y"}
	run := Ask{Op: "exec", Kind: policy.KindExec, Path: "/h/c/y"}
	list := Ask{Op: "list", Kind: policy.KindPath, Path: "/h/c", Flags: []string{"dir"}}
	for name, c := range map[string]struct {
		ask      Ask
		carried  map[string]string
		contacts []Contact
		want     Decision
		others   string
	}{
		"a host":                    {host("deaf.test"), nil, nil, Allow, ""},
		"a host, after reading":     {host("deaf.test"), carried, nil, AskHuman, "/h/c/x"},
		"a host that accepts":       {host("good.test"), carried, nil, Allow, ""},
		"an unknown host":           {host("other.test"), carried, nil, AskHuman, "/h/c/x"},
		"a look-up":                 {lookup, carried, nil, AskHuman, "/h/c/x"},
		"a socket":                  {socket("/run/deaf.sock"), nil, nil, Allow, ""},
		"a socket, after reading":   {socket("/run/deaf.sock"), carried, nil, AskHuman, "/h/c/x"},
		"a socket that accepts":     {socket("/run/good.sock"), carried, nil, Allow, ""},
		"a read":                    {read("/h/c/y"), nil, nil, Allow, ""},
		"a read, after contact":     {read("/h/c/y"), nil, []Contact{deaf}, AskHuman, "deaf.test:443"},
		"a read after a read":       {read("/h/c/y"), carried, []Contact{deaf}, Allow, ""},
		"a read, no label":          {read("/h/n/y"), nil, []Contact{deaf}, Allow, ""},
		"a link to it":              {link, nil, []Contact{deaf}, AskHuman, "deaf.test:443"},
		"running it":                {run, nil, []Contact{deaf}, AskHuman, "deaf.test:443"},
		"listing it":                {list, nil, []Contact{deaf}, AskHuman, "deaf.test:443"},
		"contact with who accepts":  {read("/h/c/y"), nil, []Contact{{Kind: policy.KindHost, Name: "good.test"}}, Allow, ""},
		"contact that has no rule":  {read("/h/c/y"), nil, []Contact{{Name: "what is let in"}}, AskHuman, "what is let in"},
		"contact by a strange name": {read("/h/c/y"), nil, []Contact{{Kind: policy.KindHost, Name: "@"}}, AskHuman, "@"},
	} {
		e := labels(t, rules, c.carried, c.contacts...)
		v := Decide(c.ask, e)
		if got := strings.Join(v.Others, " "); v.Decision != c.want || got != c.others {
			t.Errorf("%s: %v because of %q (%s), want %v because of %q", name, v.Decision, got, v.Reason, c.want, c.others)
		}
		e.Static = true
		if v := Decide(c.ask, e); (v.Decision == Allow) != (c.want == Allow) {
			t.Errorf("%s, where nobody is asked: %v", name, v.Decision)
		}
		e.Labels = nil // the control
		if v := Decide(c.ask, e); v.Decision != Allow && c.ask.Host != "other.test" && c.ask.Target == "" {
			t.Errorf("%s, without labels: %v, %s", name, v.Decision, v.Reason)
		}
	}
}

// What an answer lets be heard of is what the session had read then. One that is kept becomes a rule that says so.
func TestAnswerAboutLabels(t *testing.T) {
	list := []policy.Rule{allowing(policy.KindHost, "deaf.test", "")}
	e := labels(t, list, map[string]string{"a": "/h/a"})
	ask := Ask{Op: "connect", Kind: policy.KindHost, Host: "deaf.test", Port: 443}
	v := Decide(ask, e)
	q := Question{Op: "connect", Host: "deaf.test", Port: 443, Labels: v.Labels, Others: v.Others}
	c, err := Means(&q, Answer{Allow: true, Life: Forever}, e.Now)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := c.Rules(e.Now)
	if err != nil || len(rules) != 1 || !slices.Equal(rules[0].Accepts, []string{"a"}) {
		t.Fatalf("%v, %v", rules, err)
	}
	if text := c.Text(func(p string) string { return p }); !strings.Contains(text, "may then hear of a") {
		t.Error(text)
	}
	for _, g := range c.Covers {
		e.Grants.Add(g)
	}
	if v := Decide(ask, e); v.Decision != Allow {
		t.Errorf("%v: %s", v.Decision, v.Reason)
	}
	e.Labels.Carried["b"] = "/h/b"
	if v := Decide(ask, e); v.Decision != AskHuman {
		t.Errorf("it hears of what was read since: %v", v.Decision)
	}
	read := Question{Op: "read", Path: "/h/a", Labels: []string{"a"}, Others: []string{"deaf.test"}}
	if _, err := Means(&read, Answer{Allow: true, Life: Forever}, e.Now); err == nil {
		t.Error("who is in contact is kept as a rule")
	}
	if _, err := Means(&read, Answer{Life: Forever}, e.Now); err != nil {
		t.Errorf("a no is not kept: %v", err)
	}
}
