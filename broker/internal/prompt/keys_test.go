package prompt

import (
	"testing"
	"time"
)

func TestKeys(t *testing.T) {
	file := Question{Op: "open", Path: "/a/b/c"}
	many := Question{Op: "open", Path: "/a/b", Paths: []Name{{Path: "/a/b/x"}, {Path: "/a/b/y"}}}
	walk := Question{Op: "open", Path: "/a/b/c", Walk: "/a"}
	host := Question{Host: "api.github.com"}
	top := Question{Op: "open", Path: "/x"}
	secret := Question{Op: "read", Path: "/h/.netrc", Exe: "/bin/x", Secret: true}
	for _, c := range []struct {
		q        Question
		keys     string
		want     Answer
		more, ok bool
	}{
		{file, "o", Answer{Allow: true, Scope: Once, Life: ForOnce}, false, true},
		{file, "s", Answer{Allow: true, Scope: File, Life: ForSession}, false, true},
		{file, "f", Answer{Allow: true, Scope: File, Life: Forever, Persist: "user"}, false, true},
		{file, "h", Answer{Allow: true, Scope: File, Life: ForHour}, false, true},
		{file, "th", Answer{Allow: true, Scope: Tree, Life: ForHour}, false, true},
		{file, "p", Answer{Allow: true, Scope: File, Life: Forever, Persist: "project"}, false, true},
		{file, "n", Answer{Scope: Once, Life: ForOnce}, false, true},
		{file, "v", Answer{Scope: File, Life: Forever, Persist: "user"}, false, true},
		{file, "d", Answer{}, true, false},
		{file, "ds", Answer{Allow: true, Scope: Dir, Life: ForSession}, false, true},
		{file, "tf", Answer{Allow: true, Scope: Tree, Life: Forever, Persist: "user"}, false, true},
		{file, "dn", Answer{Scope: Dir, Life: ForSession}, false, true},
		{file, "tv", Answer{Scope: Tree, Life: Forever, Persist: "user"}, false, true},
		{file, "do", Answer{}, false, false},
		{file, "dd", Answer{}, false, false},
		{file, "dss", Answer{}, false, false},
		{file, "w", Answer{}, false, false},
		// a secret has no key that shows it, and its word is taken letter by letter
		{secret, "o", Answer{}, false, false},
		{secret, "s", Answer{}, false, false},
		{secret, "h", Answer{}, false, false},
		{secret, "f", Answer{}, false, false},
		{secret, "p", Answer{}, false, false},
		{secret, "d", Answer{}, false, false},
		{secret, "t", Answer{}, false, false},
		{secret, "w", Answer{}, false, false},
		{secret, "y", Answer{}, false, false},
		{secret, "\r", Answer{}, false, false},
		{secret, "r", Answer{}, true, false},
		{secret, "rn", Answer{}, false, false},
		{secret, "revea", Answer{}, true, false},
		{secret, "revea\r", Answer{}, false, false},
		{secret, "reveal", Answer{}, true, false},
		{secret, "reveals", Answer{}, false, false},
		{secret, "reveal\r", Answer{Allow: true, Scope: Revealed, Life: ForSession}, false, true},
		{secret, "n", Answer{Scope: File, Life: ForSession}, false, true},
		{secret, "en", Answer{Scope: Everything, Life: ForSession}, false, true},
		{secret, "reve\x1b", Answer{Scope: Once, Life: ForOnce}, false, true},
		{file, "\x1b", Answer{Scope: Once, Life: ForOnce}, false, true},
		{file, "d\x03", Answer{Scope: Once, Life: ForOnce}, false, true},
		{file, "\x04", Answer{Scope: Once, Life: ForOnce}, false, true},
		{file, "\r", Answer{}, false, false},
		{file, "\n", Answer{}, false, false},
		{file, " ", Answer{}, false, false},
		{file, "y", Answer{}, false, false},
		{file, "O", Answer{}, false, false},
		{file, "\xff", Answer{}, false, false},
		{file, "", Answer{}, true, false},
		{many, "s", Answer{Allow: true, Scope: File, Life: ForSession}, false, true},
		{many, "ds", Answer{Allow: true, Scope: Dir, Life: ForSession}, false, true},
		{walk, "ws", Answer{Allow: true, Scope: Walk, Life: ForSession}, false, true},
		{walk, "wn", Answer{Scope: Walk, Life: ForSession}, false, true},
		{many, "ts", Answer{Allow: true, Scope: Tree, Life: ForSession}, false, true},
		{host, "s", Answer{Allow: true, Scope: HostScope, Life: ForSession}, false, true},
		{host, "ws", Answer{Allow: true, Scope: Domain, Life: ForSession}, false, true},
		{Question{Op: "open", Path: "/a/b", Exe: "/bin/x"}, "rn", Answer{Scope: Program, Life: ForSession}, false, true},
		{file, "r", Answer{}, false, false}, // whose question it is is not known
		{file, "en", Answer{Scope: Everything, Life: ForSession}, false, true},
		{host, "en", Answer{Scope: Everything, Life: ForSession}, false, true},
		{file, "es", Answer{}, false, false},
		{file, "eo", Answer{}, false, false},
		{file, "ev", Answer{}, false, false},
		{file, "ep", Answer{}, false, false},
		{host, "d", Answer{}, false, false},
		{Question{Op: "decoy", Path: "/a/b"}, "o", Answer{Allow: true, Scope: Once, Life: ForOnce}, false, true},
		{Question{Op: "decoy", Path: "/a/b"}, "s", Answer{}, false, false},
		{Question{Op: "decoy", Path: "/a/b"}, "n", Answer{Scope: Once, Life: ForOnce}, false, true},
		{top, "d", Answer{}, false, false},
		{top, "t", Answer{}, false, false},
	} {
		got, more, ok := Keys([]byte(c.keys), &c.q)
		if got != c.want || more != c.more || ok != c.ok {
			t.Errorf("%q at %q: %+v %v %v", c.keys, c.q.Path, got, more, ok)
		}
	}
}

// Whatever is typed: an answer fits its question, and only o, s, h, f and p grant.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("ds"), "/a/b/c", "", false)
	f.Add([]byte("w\x1b"), "", "api.github.com", false)
	f.Add([]byte("t"), "/a", "", true)
	f.Fuzz(func(t *testing.T, typed []byte, path, host string, many bool) {
		q := Question{Op: "open", Path: "/" + path, Host: host}
		if many && host == "" {
			q.Paths, q.Walk = []Name{{Path: q.Path + "/a"}, {Path: q.Path + "/b"}}, "/"+path
		}
		a, more, ok := Keys(typed, &q)
		if more && ok {
			t.Fatalf("%q is an answer and the beginning of one", typed)
		}
		if !ok {
			if a != (Answer{}) {
				t.Fatalf("%q: %+v without ok", typed, a)
			}
			return
		}
		if _, err := a.Normal(&q, time.Unix(0, 0)); err != nil && !(a.Allow && q.Container() == "/") {
			t.Fatalf("%q: %+v does not fit %+v: %v", typed, a, q, err)
		}
		last := typed[len(typed)-1]
		if a.Allow && last != 'o' && last != 's' && last != 'h' && last != 'f' && last != 'p' {
			t.Fatalf("%q allows", typed)
		}
	})
}
