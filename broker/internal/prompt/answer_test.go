package prompt

import (
	"strings"
	"testing"
	"time"
)

func TestNormal(t *testing.T) {
	now := time.Unix(1000, 0)
	file := Question{Op: "open", Path: "/a/b/c"}
	many := Question{Op: "open", Path: "/a/b", Dir: true, Paths: []Name{{Path: "/a/b/x"}, {Path: "/a/b/y"}}}
	walk := Question{Op: "open", Path: "/a/b/c", Walk: "/a"}
	host := Question{Op: "connect", Host: "api.github.com", Port: 443}
	addr := Question{Op: "connect", Host: "10.0.0.1", Port: 22}
	for _, c := range []struct {
		name string
		q    Question
		in   Answer
		want Answer
		err  string
	}{
		{"empty", file, Answer{}, Answer{Scope: Once, Life: ForOnce}, ""},
		{"session", file, Answer{Life: ForSession}, Answer{Scope: File, Life: ForSession}, ""},
		{"dir", file, Answer{Scope: Dir}, Answer{Scope: Dir, Life: ForSession}, ""},
		{"tree forever", file, Answer{Scope: Tree, Life: Forever}, Answer{Scope: Tree, Life: Forever, Persist: "user"}, ""},
		{"project", file, Answer{Persist: "project"}, Answer{Scope: File, Life: Forever, Persist: "project"}, ""},
		{"until", file, Answer{Until: now.Add(1)}, Answer{Scope: File, Life: ForUntil, Until: now.Add(1)}, ""},
		{"file once", file, Answer{Scope: File, Life: ForOnce}, Answer{Scope: Once, Life: ForOnce}, ""},
		{"many", many, Answer{Life: ForSession}, Answer{Scope: File, Life: ForSession}, ""},
		{"walk", walk, Answer{Scope: Walk}, Answer{Scope: Walk, Life: ForSession}, ""},
		{"no walk", file, Answer{Scope: Walk}, Answer{}, "goes through no directory"},
		{"host", host, Answer{Life: ForSession}, Answer{Scope: HostScope, Life: ForSession}, ""},
		{"domain", host, Answer{Scope: Domain}, Answer{Scope: Domain, Life: ForSession}, ""},
		{"past", file, Answer{Life: ForUntil, Until: now}, Answer{}, "time in the future"},
		{"until once", file, Answer{Life: ForSession, Until: now.Add(1)}, Answer{}, "use life until"},
		{"once forever", file, Answer{Scope: Once, Life: Forever}, Answer{}, "scope once cannot last"},
		{"dir once", file, Answer{Allow: true, Scope: Dir, Life: ForOnce}, Answer{Allow: true, Scope: Once, Life: ForOnce},
			""},
		{"once in a store", file, Answer{Scope: Dir, Life: ForOnce, Persist: "user"}, Answer{}, "is not stored"},
		{"persist session", file, Answer{Life: ForSession, Persist: "user"}, Answer{}, "is not stored"},
		{"store", file, Answer{Persist: "everyone"}, Answer{}, "unknown store"},
		{"scope", file, Answer{Scope: "all"}, Answer{}, "unknown scope"},
		{"life", file, Answer{Life: "long"}, Answer{}, "unknown life"},
		{"host on file", file, Answer{Scope: HostScope}, Answer{}, "does not fit a path"},
		{"dir on host", host, Answer{Scope: Dir}, Answer{}, "does not fit a host"},
		{"domain of address", addr, Answer{Scope: Domain}, Answer{}, "has no domain"},
		{"root", Question{Op: "open", Path: "/x"}, Answer{Allow: true, Scope: Tree}, Answer{}, "root directory"},
	} {
		got, err := c.in.Normal(&c.q, now)
		if c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}
}

func TestDomain(t *testing.T) {
	for h, want := range map[string]string{
		"api.github.com": "*.github.com", "github.com": "", "a.co.uk": "", "a.com.au": "", "b.a.co.uk": "*.a.co.uk",
		"localhost": "", "10.1.2.3": "", "::1": "", "a.b.example.org.": "*.b.example.org", "": "",
	} {
		if got := (&Question{Host: h}).Domain(); got != want {
			t.Errorf("%q: %q, want %q", h, got, want)
		}
	}
}

func TestParseReply(t *testing.T) {
	now := time.Unix(0, 0).UTC()
	for in, want := range map[string]Answer{
		"allow":             {Allow: true},
		"deny":              {},
		"allow tree 1h":     {Allow: true, Scope: Tree, Life: ForUntil, Until: now.Add(time.Hour)},
		" allow  forever\n": {Allow: true, Life: Forever},
		`{"decision":"allow","scope":"dir","life":"session"}`: {Allow: true, Scope: Dir, Life: ForSession},
		`{"decision":"deny","persist":"user"}`:                {Persist: "user"},
	} {
		if got, err := parseReply(in, now); err != nil || got != want {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "yes", "y", "Allow", "allow everything", "allow tree dir", "allow 1h tree",
		"allow -1h", "{}", "{", `{"decision":"allow"}{}`, `{"decision":"allow","path":"/"}`, `{"decision":true}`,
		"allow tree session x"} {
		if a, err := parseReply(in, now); err == nil {
			t.Errorf("%q was read as %+v", in, a)
		}
	}
}

func FuzzParseReply(f *testing.F) {
	f.Add("allow tree 1h")
	f.Add(`{"decision":"allow","life":"until","until":"2030-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseReply(s, time.Unix(0, 0))
		if err != nil && a.Allow {
			t.Fatalf("%q: an error that allows", s)
		}
		if a.Allow && !strings.Contains(s, "allow") && !strings.Contains(s, `\u`) {
			t.Fatalf("%q allows", s)
		}
	})
}
