//go:build linux

package prompt

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
)

// TestNoToTheRest: whatever is asked, the keys for a no to the rest refuse what would be asked about, of that program
// or of all, and nothing else: what is granted stays granted, nothing is opened, and no rule is made.
func TestNoToTheRest(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	questions := []Question{{Op: "read", Path: "/h/n/a"}, {Op: "list", Path: "/h/n", Dir: true},
		{Op: "exec", Path: "/h/n/a"}, {Op: "write", Path: "/h/n/a", Target: "/h/m"},
		{Op: "connect", Path: "/h/n/a"}, {Op: "connect", Host: "a.example.org",
			Port: 443}, {Op: "read", Path: "/h", Paths: []Name{{Path: "/h/a"}, {Path: "/h/b"}}}}
	for _, q := range questions {
		q.Exe = "/usr/bin/cat"
		for key, scope := range map[string]Scope{"rn": Program, "en": Everything} {
			a, _, ok := Keys([]byte(key), &q)
			if want := (Answer{Scope: scope, Life: ForSession}); !ok || a != want {
				t.Fatalf("%s at %+v: %+v", key, q, a)
			}
			c, err := decide.Means(&q, a, now)
			if err != nil {
				t.Fatal(err)
			}
			text := c.Text(func(p string) string { return "<" + p + ">" })
			want := map[Scope]string{Program: "no to whatever else </usr/bin/cat> would ask about, until the session ends",
				Everything: "no to everything that would be asked about, as in static mode, until the session ends"}[scope]
			if text != want {
				t.Errorf("%s: %q", key, text)
			}
			if rules, err := c.Rules(now); err == nil {
				t.Errorf("%s made rules: %v", key, rules)
			}
			grants := decide.NewGrants()
			grants.Add(decide.Grant{Kind: policy.KindPath, Name: "/h/open", Access: policy.Read, Allow: true, Scope: File,
				Life: ForSession})
			for _, g := range c.Covers {
				grants.Add(g)
			}
			env := decide.Env{Grants: grants, Now: now}
			for _, exe := range []string{"/usr/bin/cat", "/usr/bin/ca", "/usr/bin", "/bin/other", ""} {
				silent := scope == Everything || exe == q.Exe
				for _, x := range silenceProbes() {
					x.Exe = exe
					want := decide.AskHuman
					switch {
					case x.Path == "/h/open" && x.Op != "write":
						want = decide.Allow
					case silent:
						want = decide.Deny
					}
					if v := decide.Decide(x, env); v.Decision != want {
						t.Errorf("%s at %s %s%s: %s of %s%s by %q is %v (%s), want %v", key, q.Op, q.Path, q.Host, x.Op, x.Path,
							x.Host, exe, v.Decision, v.Reason, want)
					}
				}
			}
			// a directory around the program is as whole as it was
			tree := decide.Ask{Op: "read", Kind: policy.KindPath, Path: "/usr", Flags: []string{"dir", decide.WholeTree}}
			grants.Add(decide.Grant{Kind: policy.KindPath, Name: "/usr", Dir: true, Access: policy.Read, Allow: true,
				Scope: Tree, Life: ForSession})
			if v := decide.Decide(tree, env); v.Decision != decide.Allow || !v.Whole {
				t.Errorf("%s: %+v", key, v)
			}
		}
	}
}

func silenceProbes() []decide.Ask {
	return []decide.Ask{{Op: "read", Path: "/h/n/a"}, {Op: "read", Path: "/h/open"}, {Op: "write", Path: "/h/open"},
		{Op: "list", Path: "/h/n", Flags: []string{"dir"}}, {Op: "write", Path: "/srv/x"}, {Op: "exec", Kind: policy.KindExec,
			Path: "/srv/x"}, {Op: "connect", Kind: policy.KindSocket, Path: "/srv/sock"}, {Op: "connect",
			Kind: policy.KindHost, Host: "example.com", Port: 443}}
}

// TestNoToTheRestIsANo: neither a yes nor what outlives the session can be said of what is not asked yet.
func TestNoToTheRestIsANo(t *testing.T) {
	q := Question{Exe: "/bin/cat", Op: "read", Path: "/a/b"}
	for _, scope := range []Scope{Program, Everything} {
		for _, a := range []Answer{{Allow: true, Scope: scope, Life: ForSession}, {Scope: scope, Life: Forever},
			{Scope: scope, Life: ForHour, Persist: "user"}} {
			if c, err := decide.Means(&q, a, time.Now()); err == nil {
				t.Errorf("%+v: %+v", a, c)
			}
		}
	}
	if _, err := decide.Means(&Question{Op: "read", Path: "/a"}, Answer{Scope: Program}, time.Now()); err == nil {
		t.Error("the program is not known")
	}
}

// TestUndoOnTheTerminal: a key at the next question takes back the answer that was typed last, once, and says what that
// was; an answer from elsewhere is not taken back.
func TestUndoOnTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var undone []string
		f := newFake()
		q := NewQueue(Options{Undo: func(c decide.Consent) error {
			undone = append(undone, c.Text(func(p string) string { return p }))
			if c.Answer.Scope == Once {
				return errors.New("no")
			}
			return nil
		}})
		(&TTY{Screen: f, Style: Style{Word: "kobalu"}}).Start(t.Context(), q)
		press := func(keys string) {
			time.Sleep(time.Second)
			for _, k := range []byte(keys) {
				f.keys <- k
				time.Sleep(100 * time.Millisecond)
			}
		}
		first := ask(q, read("/a/b/c"))
		press("u")
		if !strings.Contains(f.last(), "not taken back: ") || len(undone) != 0 {
			t.Errorf("%q, %q", f.last(), undone)
		}
		press("ds")
		<-first
		second := ask(q, read("/a/x"))
		press("?")
		if want := "  u     takes back the last answer: read what lies directly in /a/b/"; !strings.Contains(f.last(), want) {
			t.Errorf("%s", f.last())
		}
		press("u")
		if want := "taken back: read what lies directly in /a/b/ (of directories names)"; !strings.Contains(f.last(), want) {
			t.Errorf("%s", f.last())
		}
		press("u")
		if !strings.Contains(f.last(), "not taken back: ") {
			t.Errorf("%s", f.last())
		}
		if err := q.Answer(one(t, q).ID, Answer{Allow: true, Life: ForSession, By: BySocket}); err != nil {
			t.Error(err)
		}
		<-second
		third := ask(q, read("/a/y"))
		press("u")
		press("n")
		<-third
		want := []string{"read what lies directly in /a/b/ (of directories names), until the session ends"}
		if !slices.Equal(undone, want) {
			t.Errorf("taken back: %q, want %q", undone, want)
		}
		q.Close()
	})
}
