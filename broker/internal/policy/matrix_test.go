package policy

import (
	"fmt"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy/peer"
)

// spec is one rule of the matrix; a zero Decision is none.
type spec struct {
	d     Decision
	exact bool // names the path itself, else the tree around it
	final bool
}

func (s spec) String() string {
	if s.d == 0 {
		return "-"
	}
	return fmt.Sprintf("%s%s%s", s.d, map[bool]string{true: "!", false: ""}[s.exact], map[bool]string{true: " final",
		false: ""}[s.final])
}

// specs lists every rule that a scope can have, none included.
func specs(final bool) []spec {
	out := []spec{{}}
	for _, d := range []Decision{Allow, Ask, Deny} {
		for _, exact := range []bool{false, true} {
			out = append(out, spec{d, exact, false})
			if final {
				out = append(out, spec{d, exact, true})
			}
		}
	}
	return out
}

func (s spec) rules(t *testing.T, kind Kind, scope Scope) []Rule {
	t.Helper()
	if s.d == 0 {
		return nil
	}
	pattern := map[Kind][2]string{KindPath: {"/a/**", "/a/b"}, KindExec: {"/a/**", "/a/b"}, KindSocket: {"/a/**", "/a/b"},
		KindHost: {"*.x.test", "h.x.test"}}[kind]
	r := Rule{Kind: kind, Pattern: pattern[0], Decision: s.d, Final: s.final, Origin: Origin{Scope: scope, File: "f",
		Line: 1}}
	if s.exact {
		r.Pattern = pattern[1]
	}
	r, err := NewRule(r, Vars{})
	if err != nil {
		t.Fatal(err)
	}
	return []Rule{r}
}

func matrixQuery(kind Kind) Query {
	q := Query{Kind: kind, Path: "/a/b", Access: Connect, Now: time.Unix(1, 0)}
	switch kind {
	case KindPath:
		q.Access = Read
	case KindExec:
		q.Access = Exec
	case KindHost:
		q.Path = ""
		q.Host, _ = peer.Parse("h.x.test")
		q.Port = 443
	}
	return q
}

// Every combination of one rule or none in each scope, of every decision and specificity, final or not, trusted or
// not. What must come out is written here in the words of the design, not in those of the code.
func TestPrecedenceMatrix(t *testing.T) {
	n := 0
	for _, kind := range []Kind{KindPath, KindExec, KindHost, KindSocket} {
		q := matrixQuery(kind)
		for _, trusted := range []bool{false, true} {
			for _, org := range specs(true) {
				for _, project := range specs(false) {
					for _, user := range specs(false) {
						for _, session := range specs(false) {
							var s Store
							s.ProjectTrusted = trusted
							s.rules[ScopeOrg], s.rules[ScopeProject] = org.rules(t, kind, ScopeOrg), project.rules(t, kind, ScopeProject)
							s.rules[ScopeUser], s.rules[ScopeSession] = user.rules(t, kind, ScopeUser), session.rules(t, kind, ScopeSession)
							want := Decision(0)
							switch {
							case org.final || org.d == Deny: // cannot be overridden
								want = org.d
							case session.d != 0:
								want = session.d
							case user.d != 0:
								want = user.d
							case project.d != 0 && (trusted || project.d == Deny): // only denies until trusted
								want = project.d
							default:
								want = org.d
							}
							got, ok := s.Match(q)
							if ok != (want != 0) || got.Decision != want {
								t.Fatalf("%s, trusted %t: org %v, project %v, user %v, session %v: got %v, want %v", kind, trusted, org,
									project, user, session, got.Decision, want)
							}
							n++
						}
					}
				}
			}
		}
	}
	t.Logf("%d combinations", n)
}

// Two rules of one scope: the more specific wins, then deny, ask, allow; in whichever order they stand.
func TestPrecedenceWithinAScope(t *testing.T) {
	for _, kind := range []Kind{KindPath, KindExec, KindHost, KindSocket} {
		q := matrixQuery(kind)
		for _, scope := range []Scope{ScopeOrg, ScopeProject, ScopeUser, ScopeSession} {
			for _, a := range specs(scope == ScopeOrg)[1:] {
				for _, b := range specs(scope == ScopeOrg)[1:] {
					var s Store
					s.ProjectTrusted = true
					s.rules[scope] = append(a.rules(t, kind, scope), b.rules(t, kind, scope)...)
					want := a.d
					if b.exact && !a.exact || a.exact == b.exact && b.d > a.d {
						want = b.d
					}
					if got, ok := s.Match(q); !ok || got.Decision != want {
						t.Fatalf("%s %s: %v and %v: got %v, want %v", kind, scope, a, b, got.Decision, want)
					}
				}
			}
		}
	}
}

// Whatever an untrusted project says, nothing is decided more widely than without it.
func TestUntrustedProjectNeverWidens(t *testing.T) {
	for _, kind := range []Kind{KindPath, KindExec, KindHost, KindSocket} {
		q := matrixQuery(kind)
		for i, org := range append(specs(true), specs(false)...) { // in the end what an agent's profile says
			for _, project := range specs(false) {
				for _, other := range specs(false) {
					var without Store
					if i < len(specs(true)) {
						without.rules[ScopeOrg] = org.rules(t, kind, ScopeOrg)
					} else {
						without.rules[ScopeDefault] = org.rules(t, kind, ScopeDefault)
					}
					with := without
					with.rules[ScopeProject] = append(project.rules(t, kind, ScopeProject), other.rules(t, kind, ScopeProject)...)
					before, had := without.Match(q)
					after, has := with.Match(q)
					if had && after.Decision < before.Decision || !had && has && after.Decision == Allow {
						t.Fatalf("%s: org %v, project %v and %v: %v became %v", kind, org, project, other, before.Decision,
							after.Decision)
					}
				}
			}
		}
	}
}

// A grant covers what it cannot be kept from, a refusal what would defeat it.
func TestAccessMatrix(t *testing.T) {
	for _, c := range []struct {
		d                 Decision
		rule              Access
		read, write, exec bool // is it about that access
	}{
		{Allow, Read, true, false, true}, {Allow, Write, true, true, true}, {Allow, Exec, false, false, true},
		{Deny, Read, true, true, true}, {Deny, Write, false, true, false}, {Deny, Exec, false, false, true},
		{Ask, Read, true, true, true}, {Ask, Write, false, true, false}, {Ask, Exec, false, false, true},
	} {
		r, err := NewRule(Rule{Kind: KindPath, Pattern: "/a/b", Access: c.rule, Decision: c.d}, Vars{})
		if err != nil {
			t.Fatal(err)
		}
		s := Store{}.Replace(ScopeUser, []Rule{r})
		for a, want := range map[Access]bool{Read: c.read, Write: c.write, Exec: c.exec} {
			if _, ok := s.Match(Query{Kind: KindPath, Path: "/a/b", Access: a, Now: time.Unix(1, 0)}); ok != want {
				t.Errorf("%v: about %s: %v, want %v", r, a, ok, want)
			}
		}
	}
}
