package policy

import (
	"strings"
	"testing"
)

// A rule that shows a secret names one file, to be read; no project has one, trusted or not.
func TestRevealRules(t *testing.T) {
	vars := Vars{Home: "/h", Project: "/h/p"}
	for _, c := range []struct {
		text, want string // "": it is right
	}{
		{"path = \"~/.netrc\"\ndecision = \"reveal\"", ""},
		{"path = \"~/.netrc\"\naccess = \"read\"\ndecision = \"reveal\"\nprogram = \"/usr/bin/cat\"", ""},
		{"path = \"~/.ssh/**\"\ndecision = \"reveal\"", "reading one file"},
		{"path = \"~/.ssh/*\"\ndecision = \"reveal\"", "reading one file"},
		{"path = \"~/.netrc\"\naccess = \"write\"\ndecision = \"reveal\"", "reading one file"},
		{"path = \"~/.netrc\"\naccess = \"exec\"\ndecision = \"reveal\"", "reading one file"},
		{"exec = \"~/.netrc\"\ndecision = \"reveal\"", "reading one file"},
		{"socket = \"~/.netrc\"\ndecision = \"reveal\"", "reading one file"},
		{"path = \"~/.netrc\"\ndecision = \"reveal\"\nprogram = \"cat\"", "program"},
		{"path = \"~/.netrc\"\ndecision = \"reveal\"\nprogram = \"/usr/bin/*\"", "one program"},
		{"path = \"~/.netrc\"\ndecision = \"allow\"\nprogram = \"/usr/bin/cat\"", "program goes with decision"},
		{"path = \"~/.netrc\"\ndecision = \"reveal\"\nfinal = true", "only the org file"},
	} {
		_, err := ParseRules([]byte("version = 1\n[[rule]]\n"+c.text+"\n"), "/h/policy.toml", ScopeUser, vars)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	r, err := NewRule(Rule{Kind: KindPath, Pattern: "~/.netrc", Decision: Reveal, Program: "/usr/bin/cat"}, vars)
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range []Scope{ScopeOrg, ScopeProject, ScopeUser} {
		r.Origin.Scope = scope
		s := Store{ProjectTrusted: true}.With(scope, r)
		_, read := s.Match(Query{Kind: KindPath, Path: "/h/.netrc", Access: Read})
		shown := Effective{}.Reveals(s).Rules["/h/.netrc"]
		if want := scope != ScopeProject; read != want || shown != want {
			t.Errorf("%s: matched %v, shown %v", scope, read, shown)
		}
		for _, a := range []Access{Write, Exec, List} {
			if hit, ok := s.Match(Query{Kind: KindPath, Path: "/h/.netrc", Access: a}); ok {
				t.Errorf("%s lets %s by %s", scope, a, hit)
			}
		}
	}
}

// What the organisation has made final about fs.reveal holds for every way to show a secret.
func TestRevealIsFinal(t *testing.T) {
	e := Effective{Locked: map[string]Origin{}}
	e.FS.Reveal = []string{"/h/a"}
	if r := e.Reveals(Store{}); !r.May("/h/b") || !r.Concerns("/h/a") || r.Concerns("/h/b") {
		t.Errorf("%+v", r)
	}
	e.Locked["fs.reveal"] = Origin{Scope: ScopeOrg, File: "/etc/sbx/config.toml"}
	if r := e.Reveals(Store{}); r.May("/h/b") || !r.May("/h/a") {
		t.Errorf("%+v", r)
	}
}
