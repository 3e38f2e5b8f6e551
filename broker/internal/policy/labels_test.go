package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy/peer"
)

func labelRules(t *testing.T, scope Scope, text string) Store {
	t.Helper()
	list, err := ParseRules([]byte("version = 1\n"+text), "/h/policy.toml", scope, Vars{Home: "/h"})
	if err != nil {
		t.Fatal(err)
	}
	var s Store
	return s.With(scope, list...)
}

// A label is a path's, and accepts is who is connected to.
func TestLabelRules(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"path = \"~/c/**\"\ndecision = \"allow\"\nlabel = \"clients\"", ""},
		{"path = \"~/c/**\"\ndecision = \"ask\"\nlabel = \"clients.acme-1\"", ""},
		{"host = \"a.test\"\ndecision = \"allow\"\naccepts = [\"clients\", \"secret:~/.netrc\", \"credential:gh\"]", ""},
		{"host = \"a.test\"\ndecision = \"allow\"\naccepts = [\"*\"]", ""},
		{"socket = \"/run/x.sock\"\ndecision = \"allow\"\naccepts = [\"clients\"]", ""},
		{"host = \"a.test\"\ndecision = \"allow\"\nlabel = \"clients\"", "label goes with path"},
		{"path = \"~/c\"\ndecision = \"allow\"\naccepts = [\"clients\"]", "accepts goes with host"},
		{"path = \"~/c\"\ndecision = \"reveal\"\nlabel = \"clients\"", "by itself"},
		{"path = \"~/c\"\ndecision = \"allow\"\nlabel = \"a b\"", "want letters"},
		{"path = \"~/c\"\ndecision = \"allow\"\nlabel = \"secret:x\"", "want letters"},
		{"host = \"a.test\"\ndecision = \"deny\"\naccepts = [\"clients\"]", "says nothing"},
		{"host = \"a.test\"\ndecision = \"allow\"\naccepts = [\"secret:~/*\"]", "one secret"},
		{"host = \"a.test\"\ndecision = \"allow\"\naccepts = \"clients\"", "a list of strings"},
		{"host = \"a.test\"\ndecision = \"allow\"\naccepts = [1]", "a string"},
	} {
		text := []byte("version = 1\n[[rule]]\n" + c.text + "\n")
		_, err := ParseRules(text, "/h/policy.toml", ScopeUser, Vars{Home: "/h"})
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.text, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// No rule takes a label away: neither a narrower one, nor one of another scope.
func TestLabelsStay(t *testing.T) {
	now := time.Now()
	s := labelRules(t, ScopeOrg, "[[rule]]\npath = \"/h/c/**\"\ndecision = \"ask\"\nlabel = \"clients\"\n").
		With(ScopeUser, labelRules(t, ScopeUser, "[[rule]]\npath = \"/h/c/acme/**\"\ndecision = \"allow\"\n").Rules()...)
	for _, c := range []struct {
		path string
		tree bool
		want string
	}{{"/h/c/acme/x", false, "clients"}, {"/h/c", false, "clients"}, {"/h", false, ""}, {"/h", true, "clients"},
		{"/h/d", true, ""}} {
		if got := strings.Join(s.LabelsOf(c.path, c.tree, now), " "); got != c.want {
			t.Errorf("%s (tree %t): %q, want %q", c.path, c.tree, got, c.want)
		}
	}
}

// A project that nobody trusts may keep something in, and lets nothing out.
func TestLabelsOfProjects(t *testing.T) {
	now := time.Now()
	s := labelRules(t, ScopeProject, "[[rule]]\npath = \"/h/p/data/**\"\ndecision = \"allow\"\nlabel = \"data\"\n"+
		"[[rule]]\nhost = \"a.test\"\ndecision = \"allow\"\naccepts = [\"data\"]\n")
	q := Query{Kind: KindHost, Port: 443, Access: Connect, Now: now}
	q.Host, _ = peer.Parse("a.test")
	for trusted, want := range map[bool]int{false: 1, true: 0} {
		s.ProjectTrusted = trusted
		if got := s.LabelsOf("/h/p/data/x", false, now); len(got) != 1 {
			t.Errorf("trusted %t: labels %q", trusted, got)
		}
		if got := s.Unheard(q, []string{"data"}); len(got) != want {
			t.Errorf("trusted %t: unheard %q", trusted, got)
		}
	}
}

// Whatever a rule of a project that is not trusted decides, it lets nobody hear of a label, and nothing else is its to
// give; what others say of who may hear stays. The control is the same where it is trusted.
func TestStrangersAcceptNothing(t *testing.T) {
	now := time.Now()
	q := Query{Kind: KindHost, Port: 443, Access: Connect, Now: now}
	q.Host, _ = peer.Parse("a.test")
	p, _ := peer.ParsePattern("a.test")
	ask := labelRules(t, ScopeProject, "[[rule]]\nhost = \"a.test\"\ndecision = \"ask\"\naccepts = [\"*\"]\n")
	org := ask.With(ScopeOrg, labelRules(t, ScopeOrg,
		"[[rule]]\nhost = \"a.test\"\ndecision = \"allow\"\naccepts = [\"x\"]\n").Rules()...)
	for _, c := range []struct {
		name           string
		s              Store
		trusted, hears bool
		unheard        int
		decision       Decision
	}{{"alone", ask, false, false, 2, 0}, {"trusted", ask, true, true, 0, Ask},
		{"beside the organisation's", org, false, true, 1, Allow}} {
		c.s.ProjectTrusted = c.trusted
		if r, _ := c.s.Match(q); r.Decision != c.decision || slices.Contains(r.Accepts, anyLabel) != c.trusted {
			t.Errorf("%s: %+v", c.name, r)
		}
		if got := c.s.Unheard(q, []string{"x", "y"}); len(got) != c.unheard || c.s.Hears(p, []string{"x"}, now) != c.hears {
			t.Errorf("%s: unheard %q, hears %t", c.name, got, !c.hears)
		}
		said := slices.ContainsFunc(c.s.notices(), func(n Notice) bool { return n.Kind == NoticeWidening })
		given := slices.ContainsFunc(c.s.InForce(), func(r Rule) bool { return slices.Contains(r.Accepts, anyLabel) })
		if said == c.trusted || given != c.trusted {
			t.Errorf("%s: said %t, given %t", c.name, said, given)
		}
	}
	if d := DiffRules(ask, func() Store { s := ask; s.ProjectTrusted = true; return s }()); len(d) != 1 || !d[0].Widens {
		t.Errorf("what trust changes: %v", d)
	}
}

// What the organisation has labelled by a final rule, only its own rules let be heard of.
func TestFinalLabels(t *testing.T) {
	q := Query{Kind: KindHost, Port: 443, Access: Connect, Now: time.Now()}
	q.Host, _ = peer.Parse("a.test")
	const host = "[[rule]]\nhost = \"a.test\"\ndecision = \"allow\"\naccepts = [\"clients\"]\n"
	for _, c := range []struct {
		final, org bool
		want       int
	}{{false, false, 0}, {false, true, 0}, {true, false, 1}, {true, true, 0}} {
		text := "[[rule]]\npath = \"/h/c/**\"\ndecision = \"allow\"\nlabel = \"clients\"\n"
		if c.final {
			text += "final = true\n"
		}
		if c.org {
			text += host
		}
		s := labelRules(t, ScopeOrg, text)
		if !c.org {
			s = s.With(ScopeUser, labelRules(t, ScopeUser, host).Rules()...)
		}
		if got := s.Unheard(q, []string{"clients"}); len(got) != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		p, _ := peer.ParsePattern("a.test")
		if got := s.Hears(p, []string{"clients"}, q.Now); got != (c.want == 0) {
			t.Errorf("%+v: hears %t", c, got)
		}
	}
}

// A pattern hears only what everything in it hears.
func TestPatternsThatHear(t *testing.T) {
	s := labelRules(t, ScopeUser, "[[rule]]\nhost = \"*.b.test\"\ndecision = \"allow\"\naccepts = [\"x\"]\n"+
		"[[rule]]\nhost = \"deaf.b.test\"\ndecision = \"allow\"\n"+
		"[[rule]]\nhost = \"*.c.test\"\ndecision = \"allow\"\naccepts = [\"*\"]\n")
	for text, want := range map[string]bool{"one.b.test": true, "deaf.b.test": false, "*.b.test": false, "*.c.test": true,
		"one.c.test": true, "other.test": false, "*": false} {
		p, err := peer.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Hears(p, []string{"x"}, time.Now()); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// A label acts where the path of its rule leads to, and allows nothing there.
func TestLabelsBehindLinks(t *testing.T) {
	now := time.Now()
	s := labelRules(t, ScopeUser, "[[rule]]\npath = \"/h/link/*/x*/**\"\ndecision = \"allow\"\nlabel = \"clients\"\n")
	led := s.Lead(func(p string) string { return strings.Replace(p, "/h/link", "/data", 1) })
	for _, c := range []struct {
		path string
		want int
	}{{"/h/link/a/x1/f", 1}, {"/data/a/x1/f", 1}, {"/data/a/y", 0}} {
		if got := led.LabelsOf(c.path, false, now); len(got) != c.want {
			t.Errorf("%s: %q", c.path, got)
		}
	}
	if got := s.LabelsOf("/data/a/x1/f", false, now); len(got) != 0 { // the control
		t.Errorf("without a link: %q", got)
	}
	q := Query{Kind: KindPath, Path: "/data/a/x1/f", Access: Read, Now: now}
	if r, ok := led.Match(q); ok {
		t.Errorf("it is decided by %s", r)
	}
}
