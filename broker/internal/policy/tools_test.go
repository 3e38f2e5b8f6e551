package policy

import (
	"strings"
	"testing"
	"time"
)

func TestTools(t *testing.T) {
	const text = "[tool.push]\ncommand = [\"git\", \"push\"]\narguments = [\"origin *\"]\nread = [\"~/keys/**\"]\n" +
		"reveal = [\"~/.ssh/deploy\"]\nhosts = [\"git.example:22\"]\nstdin = true\ntimeout = \"90s\"\noutput = \"1M\"\n"
	user, err := serverLayer(t, ScopeUser, text)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Merge(Layers{User: user, Vars: testVars()}, nil)
	x := e.Tools["push"]
	if err != nil || x.Name != "push" || len(x.Command) != 2 || len(x.Read) != 1 || len(x.Reveal) != 1 || !x.Stdin ||
		x.Timeout != 90*time.Second || x.Output != "1M" || x.On != "sandbox" || x.Origin.Line != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	// what a project says of a tool is left out, trusted or not
	project, err := serverLayer(t, ScopeProject, strings.Replace(text, "origin *", "**", 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []bool{false, true} {
		e, err := Merge(Layers{Project: project, User: user, Trusted: trusted, Vars: testVars()}, nil)
		if err != nil || len(e.Tools) != 1 || e.Tools["push"].Arguments[0] != "origin *" || len(e.Notices) != 1 {
			t.Errorf("trusted %t: %v, %v, %v", trusted, e.Tools, e.Notices, err)
		}
		if e, _ = Merge(Layers{Project: project, Trusted: trusted, Vars: testVars()}, nil); len(e.Tools) != 0 {
			t.Errorf("trusted %t: a project has made %v", trusted, e.Tools)
		}
	}
	more, err := serverLayer(t, ScopeUser, strings.Replace(text, "origin *", "**", 1))
	if err != nil {
		t.Fatal(err)
	}
	wide, err := Merge(Layers{User: more, Vars: testVars()}, nil)
	changes := Diff(e, wide)
	if err != nil || len(changes) == 0 {
		t.Errorf("the difference is %+v, %v", changes, err)
	}
}

func TestToolsRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"[tool.a]\n":                                                "it needs a command",
		"[tool.a]\ncommand = []\n":                                  "it needs a command",
		"[tool.a]\ncommand = [\"bin/a\"]\n":                         "neither a name nor an absolute path",
		"[tool.a]\ncommand = \"a\"\n":                               "a list of strings",
		"[tool.a]\ncomand = [\"a\"]\n":                              "did you mean tool.a.command?",
		"[tool.a]\ncommand = [\"a\"]\narguments = [\"a  b\"]\n":     "words with a space between",
		"[tool.a]\ncommand = [\"a\"]\narguments = [\"** a\"]\n":     "is a whole word, and the last",
		"[tool.a]\ncommand = [\"a\"]\narguments = [\"a**\"]\n":      "is a whole word, and the last",
		"[tool.a]\ncommand = [\"a\"]\non = \"else\"\n":              "is none of",
		"[tool.a]\ncommand = [\"a\"]\non = \"host\"\nread=[\"/a\"]": "nothing is granted but to a sandbox of its own",
		"[tool.a]\ncommand = [\"a\"]\non = \"spawn\"\n":             "leave command out",
		"[tool.a]\nwrite = [\"/a\"]\non = \"spawn\"\n":              "nothing is granted but to a sandbox of its own",
		"[tool.a]\ncommand = [\"a\"]\ntimeout = \"0s\"\n":           "timeout",
		"[tool.\".a\"]\ncommand = [\"a\"]\n":                        "must not begin with a dot",
		"[tool.\"a/b\"]\ncommand = [\"a\"]\n":                       "is not a name",
	} {
		if _, err := serverLayer(t, ScopeUser, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestAllows: a pattern stands for the arguments that it names, and no option slips through where a value was meant.
func TestAllows(t *testing.T) {
	for _, c := range []struct {
		patterns string // with a comma between; "-": none
		args     []string
		want     bool
	}{
		{"-", nil, true},
		{"-", []string{""}, false},
		{"-", []string{"x"}, false},
		{"", nil, true},
		{"", []string{""}, false},
		{"origin", nil, false},
		{"origin *", []string{"origin", "main"}, true},
		{"origin *", []string{"origin"}, false},
		{"origin *", []string{"origin", ""}, false},
		{"origin *", []string{"origin", "main", "x"}, false},
		{"origin *", []string{"origin", "--receive-pack=evil"}, false},
		{"origin *", []string{"origin", "-f"}, false},
		{"origin *", []string{"origin main"}, false},
		{"origin *", []string{"--", "origin", "main"}, false},
		{"origin *", []string{"origin", "--"}, false},
		{"origin *", []string{"origin", "a b\nc"}, true},
		{"-- *", []string{"--", "a"}, true},
		{"-- *", []string{"--", "-a"}, false},
		{"--format=* *", []string{"--format=x=y", "a"}, true},
		{"--format=* *", []string{"--format=", "a"}, true},
		{"--format=* *", []string{"--format", "a"}, false},
		{"--format=* *", []string{"--formats=x", "a"}, false},
		{"v*", []string{"v1.2"}, true},
		{"v*", []string{"-v1.2"}, false},
		{"*.txt", []string{"a.txt"}, true},
		{"*.txt", []string{"-o.txt"}, false},
		{"*.txt", []string{".txt"}, true},
		{"a*b*c", []string{"a1b2b3c"}, true},
		{"a*b*c", []string{"abc"}, true},
		{"a*b*c", []string{"ac"}, false},
		{"aa*aa", []string{"aaa"}, false},
		{"-*", []string{"--anything"}, true},
		{"**", nil, true},
		{"**", []string{"a", "b", "c"}, true},
		{"**", []string{"a", "-b"}, false},
		{"**", []string{"a", ""}, false},
		{"add **", []string{"add"}, true},
		{"add **", nil, false},
		{"a,b *", []string{"b", "c"}, true},
		{"A", []string{"a"}, false},
	} {
		x := Tool{Arguments: strings.Split(c.patterns, ",")}
		if c.patterns == "-" {
			x.Arguments = nil
		}
		if got := x.Allows(c.args); got != c.want {
			t.Errorf("%q allows %q: %t", c.patterns, c.args, got)
		}
	}
}
