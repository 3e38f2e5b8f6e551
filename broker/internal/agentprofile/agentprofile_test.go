package agentprofile

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// All that are built in can be read, name their programs once, and write no more than folders of their own.
func TestBuiltIn(t *testing.T) {
	names := BuiltIn()
	for _, want := range []string{"aider", "claude-code", "codex", "cursor-agent", "gemini-cli", "generic-node",
		"generic-python", "goose", "opencode"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing", want)
		}
	}
	owner := map[string]string{}
	for _, name := range names {
		text, _ := Text(name)
		p, err := Parse(name, "", text)
		if err != nil {
			t.Error(err)
			continue
		}
		if p.About == "" {
			t.Errorf("%s does not say what it is", name)
		}
		for _, program := range p.Programs {
			if other := owner[program]; other != "" {
				t.Errorf("%s is a program of %s and of %s", program, other, name)
			}
			owner[program] = name
		}
		for _, s := range policy.Secrets() { // what nobody but the agent should have
			for _, w := range slices.Concat(p.Read, p.Write) {
				if pattern, err := pathname.ParsePattern(w, testVars()); err == nil && s.Kind == "" &&
					pattern.MatchTree(strings.Replace(s.Pattern, "~", testVars().Home, 1)) && !strings.HasSuffix(w, "/**") {
					t.Errorf("%s: %s is a secret (%s): it belongs into login", name, w, s.Reason)
				}
			}
		}
	}
}

// TestActsIsNotWritten: none that is built in has written what agents run or follow, in whatever folder of theirs.
func TestActsIsNotWritten(t *testing.T) {
	acts := []string{"extensions/x/extension.js", "plugins/p/hooks.json", "local/claude", "bin/rg",
		"node_modules/p/index.js", "skills/s/SKILL.md", "agents/a.md", "commands/c.md", "prompts/p.md",
		"hooks/h", "hooks.json", "rules/r", "shell-snapshots/s.sh", "shell_snapshots/s.sh", "output-styles/o.md",
		"sandbox.json", "cli-config.json",
		"settings.json", "config.toml", "mcp.json", "policies/p.toml", "memories/m.md", "schedule.json",
		"a name of tomorrow"}
	states := 0
	for _, name := range BuiltIn() {
		text, _ := Text(name)
		p, err := Parse(name, "", text)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range p.Write {
			pattern, err := pathname.ParsePattern(w, testVars())
			if err != nil {
				t.Fatal(err)
			}
			for _, folder := range p.Folder {
				dir, err := pathname.ParsePattern(folder, testVars())
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range append(acts, path.Base(folder)) {
					if at := dir.Place() + "/" + x; pattern.MatchTree(at) {
						t.Errorf("%s: %s has %s written", name, w, at)
					}
				}
				if pattern.Below(dir.Place()) {
					states++
				}
			}
		}
	}
	if states < 20 {
		t.Errorf("%d names of state are written: the test looks at nothing", states)
	}
}

func testVars() policy.Vars {
	return policy.Vars{Home: "/home/u", XDGConfigHome: "/home/u/.config", XDGDataHome: "/home/u/.local/share",
		XDGStateHome: "/home/u/.local/state", XDGCacheHome: "/home/u/.cache"}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"all", "version = 1\nabout = \"x\"\nprograms = [\"x\", \"g++\"]\nruns = [\"node\"]\nread = [\"/etc/x/**\"]\n" +
			"write = [\"~/.x/**\", \"$XDG_CACHE_HOME/x/**\"]\nguard = [\"~/.x/hooks\"]\nlogin = [\"~/.x/auth.json\"]\n" +
			"hosts = [\"x.example:443\"]\nenv = [\"X_KEY\"]\n", ""},
		{"nothing", "", ""},
		{"a folder", "folder = [\"~/.x\"]\nwrite = [\"~/.x/s/**\", \"~/.x/*.db\"]\nguard = [\"~/.x/s/*/m/**\"]\n" +
			"layer = [\"~/.x/p\"]\n", ""},
		{"all of a folder", "folder = [\"~/.x\"]\nwrite = [\"~/.x/**\"]\n",
			"f.toml:2: write: \"~/.x/**\": in a folder, name"},
		{"deep in a folder", "folder = [\"~/.x\"]\nwrite = [\"~/.x/a/b\"]\n", "name what lies directly in it"},
		{"a class of names", "folder = [\"~/.x\"]\nwrite = [\"~/.x/[ab]\"]\n", "name what lies directly in it"},
		{"a folder by a star", "folder = [\"~/.x*\"]\n", "is not one directory"},
		{"layers by a star", "layer = [\"~/.x/*\"]\n", "is not one directory"},
		{"a layer over the home", "layer = [\"~\"]\n", "is too wide"},
		{"a guard by a star", "guard = [\"~/.x/*.js\"]\n", "only what lies in a folder may have a star"},
		{"unknown key", "\nrite = []\n", `reading f.toml:2: unknown key "rite"; did you mean write?`},
		{"a switch without a key", "nested_if = ['~/.a/b.json']\n", "is not a file and a key"},
		{"a switch of a project", "nested_if = ['.a/b.json on']\n", "is not a plain path of the home or the system"},
		{"a switch that climbs", "nested_if = ['~/../b.json on']\n", "is not a plain path of the home or the system"},
		{"a table", "[write]\nx = 1\n", "write: want a list of at most 200 strings"},
		{"no list", "write = \"~/.x\"\n", "reading f.toml:1: write: want a list of at most 200 strings"},
		{"no string", "env = [1]\n", "env: want a list of strings"},
		{"version", "version = 2\n", "version must be 1"},
		{"no TOML", "write = [\n", "reading f.toml"},
		{"the home", "write = [\"~/**\"]\n", `"~/**" is too wide`},
		{"all in the home", "read = [\"~/*\"]\n", "is too wide"},
		{"the home by another name", "read = [\"/home/x\"]\n", "is too wide"},
		{"everybody's data", "write = [\"$XDG_DATA_HOME/**\"]\n", "is too wide"},
		{"everything", "read = [\"/**\"]\n", "is too wide"},
		{"the project", "read = [\"$PROJECT/.env\"]\n", "a project is shown anyway"},
		{"a relative path", "read = [\"x\"]\n", "it is not absolute"},
		{"a path up", "read = [\"~/../x\"]\n", "is not allowed as a component"},
		{"a variable that runs code", "env = [\"LD_PRELOAD\"]\n", "is not the name of a variable that a profile may pass"},
		{"a pattern of variables", "env = [\"AWS_*\"]\n", "is not the name of a variable that a profile may pass"},
		{"a path as a program", "programs = [\"/bin/x\"]\n", "is not the name of a program"},
		{"a login of nobody's", "login = [\"~/.x/auth\"]\n", "programs must say which programs it is shown to"},
		{"a host", "hosts = [\"a b\"]\n", "hosts: "},
		{"escapes", "about = \"\\u001b[31m\"\n", "plain characters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x", "f.toml", []byte(c.text))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// One rule each for what programs make beside a file while they replace it, and none about the file's neighbours.
func TestNests(t *testing.T) {
	files := map[string]string{"/home/u/.a/on.json": `{"sandbox": {"enabled": true}}`,
		"/home/u/.a/off.json": `{"sandbox": {"enabled": false}}`, "/home/u/.a/text.json": `{"sandbox": {"enabled": "true"}}`,
		"/etc/a.json": `{"sandbox": {"enabled": true}}`, "/home/u/.a/flat.json": `{"sandbox": true}`,
		"/home/u/.a/broken.json": `{"sandbox": {"enabled": true}`}
	read := func(file string) []byte { return []byte(files[file]) }
	for _, row := range []struct {
		nested   bool
		switches []string
		want     bool
	}{
		{true, nil, true}, {false, nil, false},
		{true, []string{"~/.a/on.json sandbox.enabled"}, true}, {false, []string{"~/.a/on.json sandbox.enabled"}, false},
		{true, []string{"~/.a/off.json sandbox.enabled"}, false}, {true, []string{"~/.a/text.json sandbox.enabled"}, false},
		{true, []string{"~/.a/flat.json sandbox.enabled"}, false},
		{true, []string{"~/.a/broken.json sandbox.enabled"}, false},
		{true, []string{"~/.a/none.json sandbox.enabled", "/etc/a.json sandbox.enabled"}, true},
	} {
		p := &Profile{Nested: row.nested, NestedIf: row.switches}
		if got := p.Nests("/home/u", read); got != row.want {
			t.Errorf("nested %v with %q: %v", row.nested, row.switches, got)
		}
	}
}

// The person's profile counts before the organisation's, and that before what comes with sbx.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	src := policy.Sources{UserDir: filepath.Join(dir, "user"), OrgDir: filepath.Join(dir, "org"), OrgUID: os.Getuid(),
		UID: os.Getuid(), ProjectDir: filepath.Join(dir, "project")}
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	about := func(want string) {
		t.Helper()
		if p, err := Load("codex", src); err != nil || p.About != want {
			t.Errorf("%+v, %v, want %q", p, err, want)
		}
	}
	about("Codex, by OpenAI")
	write("project/.sbx/agents/codex.toml", "about = \"a project's\"")
	about("Codex, by OpenAI")
	write("org/agents/codex.toml", "about = \"the organisation's\"")
	about("the organisation's")
	write("user/agents/codex.toml", "about = \"mine\"")
	about("mine")
	write("user/agents/own.toml", "programs = [\"mine\"]")
	if p, err := Of("mine", src); err != nil || p == nil || p.Name != "own" {
		t.Errorf("by its program: %+v, %v", p, err)
	}
	if p, err := Of("cat", src); err != nil || p != nil {
		t.Errorf("cat is an agent's: %+v, %v", p, err)
	}
	for name, want := range map[string]string{"claude": "did you mean claude-code", "codx": "did you mean codex?",
		"zzzzzzzz": "there are aider, claude-code", "../user/agents/codex": "is not a name", "": "is not a name"} {
		if _, err := Load(name, src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "user/agents/codex.toml"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load("codex", src); err == nil || !strings.Contains(err.Error(), "writable by group or others") {
		t.Errorf("a file that anybody can write is taken: %v", err)
	}
}

// Whatever a file holds, a profile names nothing that is too wide, and is read the same way twice.
func FuzzParse(f *testing.F) {
	for _, name := range BuiltIn() {
		text, _ := Text(name)
		f.Add(text)
	}
	f.Add([]byte("write = [\"~/**\"]"))
	f.Add([]byte("write = [\"/**/x\", \"/\\\\x68ome/**\"]\nprograms = [\"\"]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("x", "f", text)
		if err != nil {
			return
		}
		for _, s := range slices.Concat(p.Read, p.Write, p.Login, p.Guard, p.Folder, p.Layer) {
			pattern, err := pathname.ParsePattern(s, policy.Vars{Home: "/home/x", TmpDir: "/tmp",
				XDGConfigHome: "/home/x/.config",
				XDGDataHome:   "/home/x/.local/share", XDGStateHome: "/home/x/.local/state", XDGCacheHome: "/home/x/.cache"})
			if err != nil || pattern.MatchTree("/home/x") || pattern.MatchTree("/") {
				t.Errorf("%q: %v", s, err)
			}
		}
		if len(p.Login) > 0 && len(p.Programs) == 0 {
			t.Error("a login that belongs to no program")
		}
	})
}
