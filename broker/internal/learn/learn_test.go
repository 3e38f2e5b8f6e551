package learn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
)

func options() Options {
	return Options{Vars: policy.Vars{Home: "/home/u", Project: "/home/u/p"}, Command: []string{"agent"}, Now: time.Unix(0,
		0)}
}

func reads(paths ...string) []Access {
	var out []Access
	for _, p := range paths {
		out = append(out, Access{Kind: policy.KindPath, Path: p, Access: policy.Read, Exe: "/usr/bin/cat"})
	}
	return out
}

func patterns(rules []policy.Rule) string {
	var out []string
	for _, r := range rules {
		out = append(out, string(r.Access)+" "+r.Pattern)
	}
	return strings.Join(out, ", ")
}

func TestPolicy(t *testing.T) {
	many := func(dir string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%s/f%d", dir, i))
		}
		return out
	}
	for _, c := range []struct {
		name string
		in   []Access
		want string
	}{
		{"nothing", nil, ""},
		{"single files stay single", reads("/srv/x/a", "/srv/x/b", "/home/u/notes"),
			"read ~/notes, read /srv/x/a, read /srv/x/b"},
		{"a directory of many", reads(many("/srv/x/data", 4)...), "read /srv/x/data/**"},
		{"a tree of many", reads(append(append(many("/srv/x/t/a", 3), many("/srv/x/t/b", 3)...), many("/srv/x/t/c",
			3)...)...), "read /srv/x/t/**"},
		{"the narrowest directory", reads(many("/srv/x/only/here", 9)...), "read /srv/x/only/here/**"},
		{"never a home", reads(many("/home/u", 50)...), patternsOf("read ~/f%d", 50)},
		{"never what lies above a project or home", reads(many("/home/v", 5)...), patternsOf("read /home/v/f%d", 5)},
		{"never a top directory", reads(many("/srv", 5)...), patternsOf("read /srv/f%d", 5)},
		{"never all settings", reads(many("/home/u/.config", 5)...), patternsOf("read ~/.config/f%d", 5)},
		{"toolchains", reads("/home/u/.cargo/bin/cargo", "/home/u/.rustup/x/y", "/opt/sdk/include/a.h"),
			"read ~/.cargo/**, read ~/.rustup/**, read /opt/sdk/**"},
		{"a directory that was only looked at", reads("/home/u/d", "/home/u/d/f"), "read ~/d, read ~/d/f"},
		{"a directory that was opened", []Access{{Kind: policy.KindPath, Path: "/home/u/d", Access: policy.Read,
			Tree: true}}, "read ~/d/**"},
		{"a home that was opened", []Access{{Kind: policy.KindPath, Path: "/home/u", Access: policy.Read, Tree: true}},
			"read ~"},
		{"names are literal", reads("/srv/x/*", "/srv/x/\xff"), `read /srv/x/\*, read /srv/x/\xff`},
		{"the project is named", reads("/home/u/p/x"), "read $PROJECT/x"},
		{"writes and hosts", []Access{{Kind: policy.KindPath, Path: "/srv/x/out", Access: policy.Write, Refused: true},
			{Kind: policy.KindHost, Host: "a.test", Port: 443}, {Kind: policy.KindHost, Host: "::1", Port: 1},
			{Kind: policy.KindSocket, Path: "/run/x.sock", Access: policy.Connect}},
			"write /srv/x/out, connect [::1]:1, connect a.test:443, connect /run/x.sock"},
	} {
		text, rules := Policy(c.in, options())
		if got := patterns(rules); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		again, err := policy.ParseRules([]byte(text), "policy.toml", policy.ScopeUser, options().Vars)
		if err != nil || patterns(again) != patterns(rules) {
			t.Errorf("%s: does not read back: %v\n%s", c.name, err, text)
		}
		// Every access is covered by what was written.
		s := policy.Store{}.Replace(policy.ScopeUser, again)
		for _, a := range c.in {
			q := policy.Query{Kind: a.Kind, Path: a.Path, Port: a.Port, Access: a.Access, Now: time.Unix(1, 0)}
			if a.Kind == policy.KindHost {
				q.Host, _ = peer.Parse(a.Host)
			}
			if r, ok := s.Match(q); !ok || r.Decision != policy.Allow {
				t.Errorf("%s: %v is not covered", c.name, a)
			}
		}
	}
}

func patternsOf(format string, n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	// in the order of names
	if n > 10 {
		var sorted []string
		for i := range n {
			sorted = append(sorted, fmt.Sprintf("f%d", i))
		}
		return sortedPatterns(format, sorted)
	}
	return strings.Join(out, ", ")
}

func sortedPatterns(format string, names []string) string {
	n := newNode()
	for _, s := range names {
		n.add("/"+s, false)
	}
	var out []string
	for _, s := range n.names() {
		out = append(out, strings.Replace(format, "f%d", s, 1))
	}
	return strings.Join(out, ", ")
}

// TestNamesComeBack: no rule names what was made for one run. Its directory is named instead, or nothing where that is
// too much. What is there after the run is named as it is, whatever it looks like.
func TestNamesComeBack(t *testing.T) {
	const pid, inside = 4711, 12
	for _, c := range []struct {
		file, want, said string
		there            bool
	}{
		{file: "/home/u/app/state.json", want: "write ~/app/state.json"},
		{file: "/home/u/app/state.json.tmp.99999", want: "write ~/app/**"},
		{file: "/home/u/app/state.json.4711", want: "write ~/app/**"},
		{file: "/home/u/app/state.json.4712", want: "write ~/app/state.json.4712"}, // nobody's number
		{file: "/home/u/app/state.json.tmp.12", want: "write ~/app/**"},
		{file: "/home/u/app/state.json.12", want: "write ~/app/state.json.12"}, // a version, more likely
		{file: "/home/u/app/run.aB3xYz/out/log", want: "write ~/app/**"},
		{file: "/home/u/app/run.aB3xYz/out/log", want: "write ~/app/run.aB3xYz/out/log", there: true},
		{file: "/home/u/.claude.json.tmp.4711.aB3xYz", want: "", said: `in "~", which is too much`},
		{file: "/home/u/.config/x.tmp.4711", want: "", said: `in "~/.config", which is too much`},
		{file: "/home/u/.config/x.tmp.4711", want: "write ~/.config/x.tmp.4711", there: true},
	} {
		a := Access{Kind: policy.KindPath, Path: c.file, Access: policy.Write, Exe: "/usr/bin/node"}
		if dir, whole := ComesBack(a.Path, "/home/u", pid, inside); !whole {
			a.Base = dir
		}
		o := options()
		o.There = func(string) bool { return c.there }
		text, rules := Policy([]Access{a}, o)
		if got := patterns(rules); got != c.want {
			t.Errorf("%s, there %v: %q, want %q", c.file, c.there, got, c.want)
		}
		if no := "# No rule: "; !strings.Contains(text, c.said) || strings.Contains(text, no) != (c.said != "") {
			t.Errorf("%s, there %v: want %q in\n%s", c.file, c.there, c.said, text)
		}
		if _, err := policy.ParseRules([]byte(text), "policy.toml", policy.ScopeUser, o.Vars); err != nil {
			t.Errorf("%s: does not read back: %v\n%s", c.file, err, text)
		}
	}
}

func TestTextSaysWhatToDo(t *testing.T) {
	text, _ := Policy([]Access{{Kind: policy.KindPath, Path: "/srv/x/\x1b]0;t\x07", Access: policy.Write, Refused: true,
		Exe: "/x/evil\nname"}}, options())
	for _, c := range []byte(text) {
		if c != '\n' && (c < 0x20 || c >= 0x7f) {
			t.Fatalf("raw byte %#x in\n%q", c, text)
		}
	}
	for _, want := range []string{"sbx policy import policy FILE", "refused while learning", "# written\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
