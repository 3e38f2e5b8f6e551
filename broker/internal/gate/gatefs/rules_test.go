package gatefs

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/guard"
)

// walkRules follows a path through the automaton and returns what it says about the last component.
func walkRules(z *zone, p string) (ruling, *zone) {
	parts := strings.Split(p, "/")
	for _, c := range parts[:len(parts)-1] {
		z = z.below(c)
	}
	last := parts[len(parts)-1]
	return z.rule(last), z.below(last)
}

func TestRules(t *testing.T) {
	set, err := compile(append(projectRules(), Rule{Pattern: ".git/modules/**/hooks", Action: Guard}, Rule{Pattern: "*/.idea", Action: Guard}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path     string
		action   Action
		mkdir    bool
		anchored bool
	}{
		{path: "main.go"},
		{path: ".env", action: Hide},
		{path: ".ENV", action: Hide},
		{path: ".e\u200bnv", action: Hide},
		{path: ".env.local", action: Hide},
		{path: ".env.example"},
		{path: "sub/.env"},
		{path: "a/b/c.pem", action: Hide},
		{path: "c.PEM", action: Hide},
		{path: ".git", anchored: true},
		{path: ".GIT", anchored: true},
		{path: ".git/hooks", action: Guard, mkdir: true, anchored: true},
		{path: ".git/hooks/pre-commit", action: Guard},
		{path: ".git/hooks/a/b", action: Guard},
		{path: ".git/hooks/x.sample"},
		{path: ".git/config", action: Check},
		{path: ".git/config.lock"},
		{path: ".git/info", anchored: true},
		{path: ".git/info/attributes", action: Guard},
		{path: ".git/info/exclude"},
		{path: ".git/modules", anchored: true},
		{path: ".git/modules/a"},
		{path: ".git/modules/hooks", action: Guard},
		{path: ".git/modules/a/b/hooks", action: Guard},
		{path: ".git/modules/a/hooks/x", action: Guard},
		{path: ".vscode/a/b", action: Guard},
		{path: ".vſcode", action: Guard},
		{path: "x/.idea", action: Guard},
		{path: "x"},
		{path: reservedPrefix + "1", action: Hide},
	} {
		r, _ := walkRules(set.start(), c.path)
		if want := (ruling{c.action, c.mkdir, c.anchored}); r != want {
			t.Errorf("%q: got %+v, want %+v", c.path, r, want)
		}
	}
}

func TestZonesSayWhereDirectoriesMayMove(t *testing.T) {
	set, err := compile([]Rule{{Pattern: ".git/**/hooks", Action: Guard}, {Pattern: "**/*.pem", Action: Hide}, {Pattern: "a/b", Action: Guard}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"x", "y", true}, {"x/y", "z", true}, {"x", ".git", false}, {"x", ".git/x", false}, {".git/x", ".git/y/z", true},
		{".git/x", "x", false}, {"a", "x", false}, {"x", "a", false}, {"a/b", "x", false}, {"a/b", "a/b/c", true},
	} {
		_, f := walkRules(set.start(), c.from)
		_, g := walkRules(set.start(), c.to)
		if (f == g) != c.same {
			t.Errorf("%s to %s: same zone %v, want %v", c.from, c.to, f == g, c.same)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for pattern, reason := range map[string]string{
		"": "not a name", "/a": "not a name", "a//b": "not a name", "a/../b": "not a name", "a/**": "must be followed", "[": "syntax error",
	} {
		if _, err := compile([]Rule{{Pattern: pattern, Action: Hide}}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %v, want %q", pattern, err, reason)
		}
	}
	if _, err := compile([]Rule{{Pattern: "a"}}); err == nil || !strings.Contains(err.Error(), "no action") {
		t.Errorf("rule without action: %v", err)
	}
	if _, err := compile(make([]Rule, 256)); err == nil || !strings.Contains(err.Error(), "at most 255") {
		t.Errorf("256 rules: %v", err)
	}
}

func TestTreeRefuses(t *testing.T) {
	for reason, d := range map[string]Dir{
		"clean absolute": {Path: "a"}, "host directory": {Path: "/a", Host: "b/"}, "kind Guarded": {Path: "/a", Rules: []Rule{{}}},
		"one path component": {Path: "/a", Children: []Child{{Name: "a/b"}}}, "no target": {Path: "/a", Children: []Child{{Name: "a", Kind: Symlink}}},
		"listed twice": {Path: "/a", Children: []Child{{Name: "a"}, {Name: "a"}}}, "opening guarded": {Path: "/a", Host: "/nonexistent", Kind: Guarded},
	} {
		if _, err := newServer(Tree{Dirs: []Dir{d}}, Options{}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %q", err, reason)
		}
	}
	if _, err := newServer(Tree{Dirs: []Dir{{Path: "/a"}, {Path: "/a"}}}, Options{}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("twice: %v", err)
	}
}

// FuzzRules: the case of a name makes no difference, and what is hidden or guarded stays so under every spelling that folds alike.
func FuzzRules(f *testing.F) {
	f.Add(".git/**/hooks", ".git/a/hooks")
	f.Add("**/a/**/b", "a/x/a/b")
	f.Add("[a-z]*", "Q")
	f.Fuzz(func(t *testing.T, pattern, p string) {
		set, err := compile([]Rule{{Pattern: pattern, Action: Hide}})
		if err != nil || p == "" || len(p) > 200 {
			return
		}
		plain, _ := walkRules(set.start(), p)
		if upper, _ := walkRules(set.start(), strings.ToUpper(guard.Fold(p))); plain.action == Hide && isASCII(p) && upper.action != Hide {
			t.Errorf("%q hides %q but not its capitals", pattern, p)
		}
		z := set.start()
		for _, c := range strings.Split(p, "/") {
			for i := 1; i < len(z.states); i++ {
				if z.states[i-1] >= z.states[i] {
					t.Fatalf("%q at %q: states out of order: %v", pattern, c, z.states)
				}
			}
			if one, two := z.below(c), z.below(c); one != two {
				t.Fatalf("%q at %q: zones are not interned", pattern, c)
			}
			z = z.below(c)
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func FuzzKillPending(f *testing.F) {
	f.Add("Name:\tx\nSigPnd:\t0000000000000100\nShdPnd:\t0\n")
	f.Fuzz(func(t *testing.T, s string) { killPending(s) })
}

func TestKillPending(t *testing.T) {
	for s, want := range map[string]bool{
		"SigPnd:\t0000000000000100\n": true, "ShdPnd:\t0000000000000100\n": true, "SigPnd:\t0000000000000200\nShdPnd:\t0\n": false,
		"SigBlk:\t0000000000000100\n": false, "": false, "SigPnd:\tx": false,
	} {
		if killPending(s) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
	if killed(uint32(unix.Getpid())) || !killed(0) {
		t.Error("the test is killed, or process 0 is not")
	}
}
