package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy/pathname"
)

func mk(t testing.TB, scope Scope, kind Kind, pattern string, a Access, d Decision, final bool) Rule {
	t.Helper()
	r, err := NewRule(Rule{Kind: kind, Pattern: pattern, Access: a, Decision: d, Final: final,
		Origin: Origin{Scope: scope}}, testVars())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reference is the precedence written down a second time, as literally as docs/policy.md has it.
func reference(rules []Rule, trusted bool, spec func(Rule) int) (Rule, bool) {
	better := func(a, b Rule) bool {
		if spec(a) != spec(b) {
			return spec(a) > spec(b)
		}
		return a.Decision > b.Decision
	}
	top := map[Scope]*Rule{}
	for i, r := range rules {
		if r.Origin.Scope == ScopeProject && !trusted && r.Decision != Deny {
			continue
		}
		if cur := top[r.Origin.Scope]; cur == nil || better(r, *cur) {
			top[r.Origin.Scope] = &rules[i]
		}
	}
	if o := top[ScopeOrg]; o != nil && (o.Final || o.Decision == Deny) {
		return *o, true
	}
	for _, s := range []Scope{ScopeSession, ScopeUser, ScopeProject, ScopeOrg} {
		if top[s] != nil {
			return *top[s], true
		}
	}
	return Rule{}, false
}

// TestPrecedence runs every pair and a good share of the triples of rules over scopes, decisions, specificity, final
// and trust.
func TestPrecedence(t *testing.T) {
	patterns := []string{"/a/b/c", "/a/b/*", "/a/b/**", "/a/**"}
	var all []Rule
	for scope := ScopeOrg; scope <= ScopeSession; scope++ {
		for d := Allow; d <= Deny; d++ {
			for _, p := range patterns {
				all = append(all, mk(t, scope, KindPath, p, Read, d, false))
				if scope == ScopeOrg {
					all = append(all, mk(t, scope, KindPath, p, Read, d, true))
				}
			}
		}
	}
	spec := func(r Rule) int {
		for i, p := range patterns {
			if r.Pattern == p {
				return -i
			}
		}
		panic(r.Pattern)
	}
	check := func(rules ...Rule) {
		for _, trusted := range []bool{false, true} {
			s := Store{ProjectTrusted: trusted}
			for _, r := range rules {
				s.add(r.Origin.Scope, []Rule{r})
			}
			got, ok := s.Match(Query{Kind: KindPath, Path: "/a/b/c", Access: Read})
			want, wok := reference(rules, trusted, spec)
			if ok != wok || got.Decision != want.Decision || got.Origin != want.Origin || got.Pattern != want.Pattern {
				t.Fatalf("trusted=%v rules=%v: got %v %v, want %v %v", trusted, rules, got, ok, want, wok)
			}
		}
	}
	for i, a := range all {
		for j, b := range all {
			check(a, b)
			if (i*7+j*13)%5 == 0 {
				check(a, b, all[(i*31+j*17)%len(all)])
			}
		}
	}
}

// TestPrecedenceNamed spells out the cases that matter, independent of the reference.
func TestPrecedenceNamed(t *testing.T) {
	type rs = []Rule
	for name, c := range map[string]struct {
		rules   rs
		trusted bool
		want    Decision
	}{
		"org deny beats a more specific user allow": {rs{mk(t, ScopeOrg, KindPath, "/a/**", Read, Deny, false),
			mk(t, ScopeUser, KindPath, "/a/b/c", Read, Allow, false)}, false, Deny},
		"org final allow beats user deny": {rs{mk(t, ScopeOrg, KindPath, "/a/**", Read, Allow, true),
			mk(t, ScopeUser, KindPath, "/a/b/c", Read, Deny, false)}, false, Allow},
		"org allow yields to user deny": {rs{mk(t, ScopeOrg, KindPath, "/a/b/c", Read, Allow, false),
			mk(t, ScopeUser, KindPath, "/a/**", Read, Deny, false)}, false, Deny},
		"user overrides project": {rs{mk(t, ScopeProject, KindPath, "/a/b/c", Read, Deny, false),
			mk(t, ScopeUser, KindPath, "/a/**", Read, Allow, false)}, false, Allow},
		"command line overrides user": {rs{mk(t, ScopeUser, KindPath, "/a/b/c", Read, Deny, false),
			mk(t, ScopeSession, KindPath, "/a/**", Read, Allow, false)}, false, Allow},
		"untrusted project allow is nothing": {rs{mk(t, ScopeProject, KindPath, "/a/b/c", Read, Allow, false)},
			false, 0},
		"trusted project allow counts": {rs{mk(t, ScopeProject, KindPath, "/a/b/c", Read, Allow, false)},
			true, Allow},
		"untrusted allow does not hide its own deny": {rs{mk(t, ScopeProject, KindPath, "/a/b/c", Read, Allow, false),
			mk(t, ScopeProject, KindPath, "/a/**", Read, Deny, false)}, false, Deny},
		"untrusted project narrows the org": {rs{mk(t, ScopeOrg, KindPath, "/a/**", Read, Allow, false),
			mk(t, ScopeProject, KindPath, "/a/**", Read, Deny, false)}, false, Deny},
		"untrusted project asks nothing": {rs{mk(t, ScopeOrg, KindPath, "/a/**", Read, Allow, false),
			mk(t, ScopeProject, KindPath, "/a/**", Read, Ask, false)}, false, Allow},
		"trusted project asks": {rs{mk(t, ScopeOrg, KindPath, "/a/**", Read, Allow, false),
			mk(t, ScopeProject, KindPath, "/a/**", Read, Ask, false)}, true, Ask},
		"untrusted project cannot soften an org deny": {rs{mk(t, ScopeOrg, KindPath, "/a/**", Read, Deny, false),
			mk(t, ScopeProject, KindPath, "/a/b/c", Read, Ask, false)}, false, Deny},
		"specific wins inside a scope": {rs{mk(t, ScopeUser, KindPath, "/a/**", Read, Deny, false),
			mk(t, ScopeUser, KindPath, "/a/b/**", Read, Allow, false)}, false, Allow},
		"deny wins a tie": {rs{mk(t, ScopeUser, KindPath, "/a/b/c", Read, Allow, false),
			mk(t, ScopeUser, KindPath, "/a/b/c", Read, Deny, false)}, false, Deny},
		"ask wins over allow": {rs{mk(t, ScopeUser, KindPath, "/a/b/c", Read, Allow, false),
			mk(t, ScopeUser, KindPath, "/a/b/c", Read, Ask, false)}, false, Ask},
		"an org exception inside an org deny stays theirs": {rs{mk(t, ScopeOrg, KindPath, "/a/**", Read, Deny, false),
			mk(t, ScopeOrg, KindPath, "/a/b/c", Read, Allow, false)}, false, Allow},
	} {
		s := Store{ProjectTrusted: c.trusted}
		for _, r := range c.rules {
			s.add(r.Origin.Scope, []Rule{r})
		}
		if got, _ := s.Match(Query{Kind: KindPath, Path: "/a/b/c", Access: Read}); got.Decision != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAccess(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		rule Access
		d    Decision
		want string // accesses of a path the rule concerns
	}{
		{KindPath, Read, Allow, "read exec"}, {KindPath, Write, Allow, "read write exec"}, {KindPath, Exec, Allow, "exec"},
		{KindPath, Read, Deny, "read write exec"}, {KindPath, Write, Deny, "write"}, {KindPath, Exec, Deny, "exec"},
		{KindPath, Read, Ask, "read write exec"},
		{KindExec, Exec, Allow, "exec"}, {KindExec, Exec, Deny, "exec"},
	} {
		r := mk(t, ScopeUser, c.kind, "/a", c.rule, c.d, false)
		s := Store{}.With(ScopeUser, r)
		got := ""
		for _, a := range []Access{Read, Write, Exec} {
			if _, ok := s.Match(Query{Kind: KindPath, Path: "/a", Access: a}); ok {
				got += " " + string(a)
			}
		}
		if got != " "+c.want {
			t.Errorf("%v: concerns%s, want %s", r, got, c.want)
		}
	}
	s := Store{}.With(ScopeUser, mk(t, ScopeUser, KindSocket, "/run/x", Connect, Allow, false))
	if _, ok := s.Match(Query{Kind: KindPath, Path: "/run/x", Access: Read}); ok {
		t.Error("a socket rule must not open the path for reading")
	}
}

func TestExpiryAndTrees(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := mk(t, ScopeUser, KindPath, "/a", Read, Allow, false)
	r.Expires = now
	s := Store{}.With(ScopeUser, r)
	for delta, want := range map[time.Duration]bool{-1: true, 0: false, 1: false} {
		if _, ok := s.Match(Query{Kind: KindPath, Path: "/a", Access: Read, Now: now.Add(delta)}); ok != want {
			t.Errorf("at %d: %v", delta, ok)
		}
	}
	s = Store{}.With(ScopeUser, mk(t, ScopeUser, KindPath, "/a/b/c", Read, Deny, false))
	for dir, want := range map[string]bool{"/a": true, "/a/b": true, "/a/b/c": true, "/a/d": false, "/": true} {
		if got := s.Restricts(dir, Read, now); got != want {
			t.Errorf("Restricts(%s) = %v", dir, got)
		}
	}
	base := Store{}
	_ = base.With(ScopeUser, r)
	if len(base.Rules()) != 0 {
		t.Error("With changed its receiver")
	}
}

func TestExplicit(t *testing.T) {
	e, err := Merge(Layers{Vars: testVars()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	find := func(path string, kind Kind) Hiding {
		for _, h := range e.Concealed() {
			if h.Kind == kind && h.Rule.MatchTree(path) {
				return h
			}
		}
		t.Fatalf("%s is not hidden", path)
		return Hiding{}
	}
	for _, c := range []struct {
		path, rule string
		want       bool
	}{
		{"/home/u/.ssh/id", "~/**", false}, {"/home/u/.ssh/id", "~/.ssh/**", true}, {"/home/u/.ssh/id", "~/.ssh/id", true},
		{"/home/u/.ssh/id", "~/.ssh/*.pub", true},
		{"/home/u/.ssh/id", "/**", false}, {"/etc/shadow-", "/etc/*", false}, {"/etc/shadow-", "/etc/shadow-", true},
	} {
		h := find(c.path, KindPath)
		if got := h.Explicit(mk(t, ScopeUser, KindPath, c.rule, Read, Allow, false)); got != c.want {
			t.Errorf("%s by %s: %v", c.path, c.rule, got)
		}
		if h.Explicit(mk(t, ScopeUser, KindPath, c.rule, Read, Ask, false)) {
			t.Error("an ask rule must not uncover a secret")
		}
	}
	docker := find("/run/docker.sock", KindSocket)
	for scope, want := range map[Scope]bool{ScopeOrg: true, ScopeUser: false, ScopeSession: false, ScopeProject: false} {
		if got := docker.Explicit(mk(t, scope, KindSocket, "/run/docker.sock", Connect, Allow, false)); got != want {
			t.Errorf("docker.sock by %v: %v", scope, got)
		}
	}
}

func TestSecretsCompile(t *testing.T) {
	for _, s := range Secrets() {
		if _, err := pathname.ParsePattern(s.Pattern, testVars()); err != nil || s.Reason == "" {
			t.Errorf("%s: %v, reason %q", s.Pattern, err, s.Reason)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	s := Store{}
	for i := 0; i < 1000; i++ {
		s.add(ScopeUser, []Rule{mk(b, ScopeUser, KindPath, fmt.Sprintf("/a/b%d/**", i), Read, Allow, false)})
	}
	for b.Loop() {
		s.Match(Query{Kind: KindPath, Path: "/a/b999/c/d", Access: Read})
	}
}

func TestReplaceLeavesTheOriginalAlone(t *testing.T) {
	s := Store{}
	r, err := NewRule(Rule{Kind: KindPath, Pattern: "/x", Decision: Deny}, testVars())
	if err != nil {
		t.Fatal(err)
	}
	next := s.Replace(ScopeUser, []Rule{r})
	if len(s.Rules()) != 0 || len(next.Rules()) != 1 || next.Rules()[0].Origin.Scope != ScopeUser {
		t.Fatal(s.Rules(), next.Rules())
	}
}

// TestExceptions: of two rules about the same thing the one that ends first counts while it lives, whichever it is and
// wherever it stands; of a narrower and a wider one the narrower does, as ever.
func TestExceptions(t *testing.T) {
	now := time.Unix(1000, 0)
	rule := func(pattern string, d Decision, until int) Rule {
		r := mk(t, ScopeUser, KindPath, pattern, Read, d, false)
		if until > 0 {
			r.Expires = now.Add(time.Duration(until) * time.Minute)
		}
		return r
	}
	for _, c := range []struct {
		rules       []Rule
		first, then Decision // in half a minute, and in one and a half
	}{
		{[]Rule{rule("/a/**", Deny, 0), rule("/a/**", Allow, 1)}, Allow, Deny},
		{[]Rule{rule("/a/**", Allow, 0), rule("/a/**", Deny, 1)}, Deny, Allow},
		{[]Rule{rule("/a/**", Ask, 2), rule("/a/**", Deny, 0), rule("/a/**", Allow, 1)}, Allow, Ask},
		{[]Rule{rule("/a/**", Deny, 0), rule("/a/**", Allow, 0)}, Deny, Deny},
		{[]Rule{rule("/a/b/**", Deny, 0), rule("/a/**", Allow, 1)}, Deny, Deny},
	} {
		for range 2 {
			s := Store{}.Replace(ScopeUser, c.rules)
			for after, want := range map[int]Decision{30: c.first, 90: c.then} {
				got, _ := s.Match(Query{Kind: KindPath, Path: "/a/b/x", Access: Read,
					Now: now.Add(time.Duration(after) * time.Second)})
				if got.Decision != want {
					t.Errorf("%v after %d seconds: %v, want %v", c.rules, after, got.Decision, want)
				}
			}
			slices.Reverse(c.rules)
		}
	}
}
