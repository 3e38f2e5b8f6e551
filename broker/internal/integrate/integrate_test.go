package integrate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// place is a home with programs on PATH.
func place(t *testing.T, programs ...string) (*Host, Records) {
	t.Helper()
	home := t.TempDir()
	for _, dir := range []string{"bin", ".claude", ".config/goose"} {
		must(t, os.MkdirAll(filepath.Join(home, dir), 0o755))
	}
	for _, p := range append(programs, "sbx") {
		put(t, home+"/bin/"+p, "#!/bin/sh\n", 0o755)
	}
	return &Host{Home: home, Config: home + "/.config", Data: home + "/.local/share", Sbx: home + "/bin/sbx",
		Own:  []string{"HOME=" + home},
		Path: []string{home + "/.local/share/sbx/bin", home + "/bin"}}, Records{home + "/.state/integrations"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), mode))
	must(t, os.Chmod(path, mode))
}

// tree is every file below a directory with its mode and text.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[p] = info.Mode().String()
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			out[p] += " " + string(b)
			return err
		}
		return nil
	}))
	return out
}

func integrate(t *testing.T, h *Host, r Records, name string) []Outcome {
	t.Helper()
	a, _ := Find(name)
	files, err := a.files(h, h.lookUp(a.Programs...))
	must(t, err)
	list, err := r.Plan(files)
	must(t, err)
	out, err := r.Apply(name, list)
	must(t, err)
	return out
}

func undo(t *testing.T, r Records, name string) []Outcome {
	t.Helper()
	rec, err := r.Read(name)
	must(t, err)
	out, err := r.Undo(rec)
	must(t, err)
	return out
}

const goose = "GOOSE_PROVIDER: x\nextensions:\n  developer:\n    type: builtin\n    enabled: true\n" +
	"  files:\n    enabled: true\n    type: stdio\n    cmd: npx\n    args:\n    - -y\n    - server\n" +
	"    envs: {}\nlast: 1\n"

// What was written is taken back to the byte: files, modes, and directories that were made.
func TestUndoLeavesEveryFileAsItWas(t *testing.T) {
	for _, a := range Agents() {
		h, r := place(t, append(a.Programs, "bwrap")...)
		put(t, h.Home+"/.claude/settings.json", "{ \"model\":\"x\" , \"sandbox\": {\"enabled\":false}}", 0o640)
		put(t, h.Config+"/goose/config.yaml", goose, 0o600)
		must(t, os.MkdirAll(r.Dir, 0o700))
		before := tree(t, h.Home)
		integrate(t, h, r, a.Name)
		yaml, during := h.Config+"/goose/config.yaml", tree(t, h.Home)
		if len(during) == len(before) && during[yaml] == before[yaml] {
			t.Errorf("%s wrote nothing", a.Name)
		}
		undo(t, r, a.Name)
		after := tree(t, h.Home)
		for p, text := range before {
			if after[p] != text {
				t.Errorf("%s: %s is %q, was %q", a.Name, p, after[p], text)
			}
			delete(after, p)
		}
		for p := range after {
			t.Errorf("%s left %s", a.Name, p)
		}
	}
}

func TestUndoKeepsHandEdits(t *testing.T) {
	h, r := place(t, "claude", "opencode")
	settings := h.Home + "/.claude/settings.json"
	put(t, settings, `{"model":"x"}`, 0o600)
	integrate(t, h, r, "claude-code")
	integrate(t, h, r, "opencode")
	put(t, settings, `{"model":"y","sandbox":{"enabled":true,"more":1}}`, 0o600)
	put(t, h.Config+"/opencode/plugin/sbx.js", "// mine\n", 0o644)
	undo(t, r, "claude-code")
	if b, _ := os.ReadFile(settings); string(b) != `{"model":"y","sandbox":{"more":1}}` {
		t.Errorf("the settings are %s", b)
	}
	if out := undo(t, r, "opencode"); out[0].What != Kept {
		t.Errorf("the plugin: %v", out)
	}
	if b, _ := os.ReadFile(h.Config + "/opencode/plugin/sbx.js"); string(b) != "// mine\n" {
		t.Errorf("the plugin is %q", b)
	}
}

// Several agents call one bwrap: it goes with the last.
func TestSharedFileGoesWithTheLast(t *testing.T) {
	h, r := place(t, "codex", "srt")
	integrate(t, h, r, "codex")
	if out := integrate(t, h, r, "srt"); out[0].What != Unneeded {
		t.Errorf("the second: %v", out)
	}
	bwrap := h.bin() + "/bwrap"
	if out := undo(t, r, "codex"); out[0].What != Shared {
		t.Errorf("the first goes: %v", out)
	}
	if _, err := os.Stat(bwrap); err != nil {
		t.Error(err)
	}
	if undo(t, r, "srt"); tree(t, h.Home)[h.Data+"/sbx"] != "" {
		t.Error("its directory, which the first has made, is still there")
	}
}

// It is written anew with what sbx goes by now, and goes with the last all the same.
func TestSharedFileThatIsAnotherGoesWithTheLast(t *testing.T) {
	h, r := place(t, "codex", "srt")
	before := tree(t, h.Home)
	integrate(t, h, r, "codex")
	h.Own = append(h.Own, "XDG_CONFIG_HOME=/c")
	if out := integrate(t, h, r, "srt"); out[0].What == Unneeded {
		t.Error("the control: it is the same") // the control
	}
	undo(t, r, "srt")
	if out := undo(t, r, "codex"); out[0].What != Removed {
		t.Errorf("the last goes: %v", out)
	}
	for p := range tree(t, h.Home) {
		if before[p] == "" && !strings.HasPrefix(p, h.Home+"/.state") {
			t.Errorf("%s is left", p)
		}
	}
}

// What was written before sbx env is named, until it is written anew. What holds nothing of sbx's is not.
func TestEarlierIntegrationsAreNamed(t *testing.T) {
	h, r := place(t, "aider", "codex", "goose", "opencode", "claude")
	plain := strings.ReplaceAll(goose, "type: stdio", "type: builtin")
	put(t, h.Config+"/goose/config.yaml", plain, 0o600)
	for _, a := range []string{"aider", "codex", "goose", "opencode", "claude-code"} {
		integrate(t, h, r, a)
		rec, err := r.Read(a)
		must(t, err)
		if believes(rec) {
			t.Errorf("%s is written anew, and named", a)
		}
		switch last := rec.Files[0].Path; a {
		case "goose":
			put(t, last, strings.Replace(goose, "    - -y\n", "    - mcp\n    - --name\n    - a\n    - --\n", 1), 0o600)
		case "codex":
			must(t, os.Truncate(last, maxFile+1)) // a copy
		default:
			put(t, last, "... SBX_SID ...", 0o600)
		}
		if !believes(rec) {
			t.Errorf("%s is what an earlier sbx wrote, and not named", a)
		}
	}
}

func TestNothingOfAPersonsIsReplaced(t *testing.T) {
	h, r := place(t, "codex", "claude")
	must(t, os.MkdirAll(h.bin(), 0o755))
	put(t, h.bin()+"/bwrap", "mine", 0o755)
	put(t, h.Home+"/other.json", "{}", 0o600)
	must(t, os.Symlink(h.Home+"/other.json", h.Home+"/.claude/settings.json"))
	before := tree(t, h.Home)
	for name, want := range map[string]string{"codex": "sbx has not written it", "claude-code": "is a link"} {
		a, _ := Find(name)
		files, err := a.files(h, h.lookUp(a.Programs...))
		must(t, err)
		if _, err := r.Plan(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for p, text := range tree(t, h.Home) {
		if before[p] != text {
			t.Errorf("%s was changed", p)
		}
	}
}

func TestMCPFile(t *testing.T) {
	h, r := place(t)
	path := h.Home + "/mcp.json"
	text := `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}},
  "web": {"url": "https://mcp.example"}}, "mcp": {"b": {"type": "local", "command": ["uvx", "y"]}}}`
	put(t, path, text, 0o600)
	list, err := r.Plan(mcpFile(h, path))
	must(t, err)
	_, err = r.Apply(mcpName(path), list)
	must(t, err)
	b, _ := os.ReadFile(path)
	for _, want := range []string{`"command": "` + h.Sbx + `"`, `"web": {"url": "https://mcp.example"}`,
		`"env": {"K": "v"}`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
	flat := strings.Join(strings.Fields(string(b)), " ")
	for _, want := range []string{`"args": [ "env", "HOME=` + h.Home + `", "mcp", "--unless-sandboxed", "--name", "a", ` +
		`"--", "npx", "-y", "x" ]`,
		`"mcp", "--unless-sandboxed", "--name", "b", "--", "uvx", "y" ]`} {
		if !strings.Contains(flat, want) {
			t.Errorf("%s lacks %s", flat, want)
		}
	}
	if again, err := r.Plan(mcpFile(h, path)); err != nil || again[0].differs {
		t.Errorf("a second time it changes: %s, %v", again[0].Diff(), err)
	}
	undo(t, r, mcpName(path))
	if b, _ := os.ReadFile(path); string(b) != text {
		t.Errorf("taken back: %s", b)
	}
	for bad, want := range map[string]string{"{": "not valid JSON", "[]": "not a JSON object", "{}": "names no server",
		`{"mcpServers":{"a":{"command":7}}}`:                                       "neither a text nor",
		`{"mcpServers":{"a":{"command":"x","args":7}}}`:                            "no list of texts",
		`{"mcpServers":{"a":{"command":"` + h.Sbx + `","args":["exec","s","x"]}}}`: "but not sbx mcp",
		`{"mcp":{"a":{"command":["` + h.Sbx + `","attach","s"]}}}`:                 "but not sbx mcp"} {
		put(t, path, bad, 0o600)
		if _, err := r.Plan(mcpFile(h, path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
}

// A file of a hostile project's may grant itself nothing by way of sbx.
func TestMCPServersGrantThemselvesNothing(t *testing.T) {
	h, r := place(t)
	path := h.Home + "/mcp.json"
	own := `"command": "` + h.Sbx + `", "args": `
	for _, x := range [][2]string{
		{`"command": "x", "env": {"K": "v", "GITHUB_TOKEN": "v"}, "cwd": "${workspaceFolder}"`, ""}, // the controls
		{own + `["mcp", "--name", "a", "--", "x"]`, ""},
		{own + `["mcp", "--rw", "/x", "--name", "a", "--", "x"]`, "options of its own"},
		{own + `["mcp", "--name", "other", "--", "x"]`, "options of its own"},
		{own + `["mcp", "--name", "a", "--ro=/", "--", "x"]`, "options of its own"},
		{own + `["env", "HOME=/x", "mcp", "--unless-sandboxed", "--rw", "/x", "--name", "a", "--", "x"]`,
			"options of its own"},
		{own + `["env", "HOME=/x", "exec", "s", "x"]`, "but not sbx mcp"},
		{own + `["env"]`, "but not sbx mcp"},
		{`"command": "x", "cwd": "/other"`, "cwd would be"},
	} {
		put(t, path, `{"mcpServers": {"a": {`+x[0]+`}}}`, 0o600)
		_, err := r.Plan(mcpFile(h, path))
		if x[1] == "" && err != nil || x[1] != "" && (err == nil || !strings.Contains(err.Error(), x[1])) {
			t.Errorf("%s: %v, want %q", x[0], err, x[1])
		}
	}
}

// What sbx goes by is what it went by when it was integrated, whatever a project's file has before its server.
func TestMCPServersChooseNoSettings(t *testing.T) {
	h, r := place(t)
	path := h.Home + "/mcp.json"
	want := []string{"env", "HOME=" + h.Home, "mcp", "--unless-sandboxed", "--name", "a", "--", "x"}
	for _, args := range [][]string{{"mcp", "--name", "a", "--", "x"}, want, // the controls
		{"env", "XDG_CONFIG_HOME=/project/.c", "HOME=/project", "mcp", "--unless-sandboxed", "--name", "a", "--", "x"}} {
		b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"a": map[string]any{"command": h.Sbx,
			"args": args, "env": map[string]string{"XDG_CONFIG_HOME": "/project/.c"}}}})
		must(t, err)
		put(t, path, string(b), 0o600)
		list, err := r.Plan(mcpFile(h, path))
		must(t, err)
		var doc struct {
			Servers map[string]struct{ Args []string } `json:"mcpServers"`
		}
		must(t, json.Unmarshal(list[0].New, &doc))
		if got := doc.Servers["a"].Args; !slices.Equal(got, want) {
			t.Errorf("%q became %q", args, got)
		}
	}
}

func TestGooseExtensions(t *testing.T) {
	h := &Host{Sbx: "/x/sbx", Own: []string{"HOME=/h"}}
	got, err := h.gooseExtensions(goose)
	must(t, err)
	want := strings.Replace(goose, "    cmd: npx\n    args:\n", "    cmd: \"/x/sbx\"\n    args:\n"+
		"    - \"env\"\n    - \"HOME=/h\"\n    - \"mcp\"\n    - \"--unless-sandboxed\"\n    - \"--name\"\n    - \"files\"\n"+
		"    - \"--\"\n    - npx\n", 1)
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if again, err := h.gooseExtensions(string(got)); err != nil || string(again) != want {
		t.Errorf("a second time: %s, %v", again, err)
	}
	for _, bad := range []string{"extensions: {a: {cmd: x}}\n", "extensions:\n\ta:\n",
		"extensions:\n  a:\n    type: stdio\n    cmd: |\n      x\n",
		"extensions:\n  a:\n    type: stdio\n    cmd: x\n    args: [y]\n"} {
		if got, err := h.gooseExtensions(bad); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// No server is left outside that Go does not see and an agent does: by a name that is there twice or no text, or in
// another object. What runs outside all the same is said.
func TestMCPServersAreAllSeen(t *testing.T) {
	h, r := place(t)
	path := h.Home + "/mcp.json"
	for _, x := range []struct {
		text, fails, left string
		servers           int
	}{
		{`{"mcpServers": {"n": {"command": "a"}, "N": {"command": "b"}}}`, "", "", 2}, // the controls
		{`{"mcpServers": {"\ud83d\ude00": {"command": "a"}, "web": {"url": "x", "headers": {}}}}`, "", "", 1},
		{`{"mcpServers": {"n\ud800": {"command": "a"}, "n\ud801": {"command": "b"}}}`, "not one for every program", "", 0},
		{`{"mcpServers": {"n\ud800": {"command": "a"}}}`, "not one for every program", "", 0},
		{"{\"mcpServers\": {\"n\xff\": {\"command\": \"a\"}}}", "not one for every program", "", 0},
		{`{"mcpServers": {"n": {"command": "a"}, "\u006e": {"command": "b"}}}`, "twice", "", 0},
		{`{"mcpServers": {"n": {"command": "a"}}, "mcpServers": {}}`, "twice", "", 0},
		{`{"mcpServers": {"n": {"command": "other", "command": "evil"}}}`, "twice", "", 0},
		{`{"mcpServers": {"n": {"url": "x", "url": "y"}, "m": {"command": "a"}}}`, "twice", "", 0},
		{"\ufeff" + `{"mcpServers": {"n": {"command": "a"}}}`, "not valid JSON", "", 0},
		{`{"mcpServers": {"n": {"command": "a"}}} // more`, "not valid JSON", "", 0},
		{`{"mcpServers": [{"name": "n", "command": "a"}], "mcp": {"m": {"command": "a"}}}`, "a list", "", 0},
		{`{"mcpServers": {"m": {"command": "a"}}, "projects": {"/p": {"mcpServers": {"n": {"command": "b"}}}}}`, "", "", 2},
		{`{"mcp": {"inputs": [], "servers": {"n": {"command": "b"}}}}`, "", "", 1},
		{`{"mcpServers": {"m": {"command": "a"}, "web": {"url": "x", "headersHelper": "./token"}}}`, "",
			`server "web": its headersHelper`, 1},
	} {
		put(t, path, x.text, 0o600)
		list, err := r.Plan(mcpFile(h, path))
		if x.fails != "" {
			if err == nil || !strings.Contains(err.Error(), x.fails) {
				t.Errorf("%s: %v, want %q", x.text, err, x.fails)
			}
			continue
		}
		must(t, err)
		if n := strings.Count(string(list[0].New), `"command": "`+h.Sbx+`"`); n != x.servers {
			t.Errorf("%s: %d servers are in a sandbox, want %d: %s", x.text, n, x.servers, list[0].New)
		}
		if left := strings.Join(list[0].left, "; "); !strings.HasPrefix(left, x.left) || left != "" && x.left == "" {
			t.Errorf("%s: it says %q, want %q", x.text, left, x.left)
		}
	}
}

// Agents tell Command from command, as JSON does and Go's structs do not: what they do not read says nothing about
// what they run.
func TestMCPServersCannotPassForWrapped(t *testing.T) {
	h, r := place(t)
	path := h.Home + "/mcp.json"
	for _, text := range []string{`{"mcpServers": {"a": {"command": "evil", "args": ["x"]}}}`, // the control
		`{"mcpServers": {"a": {"command": "evil", "args": ["x"], "Command": "` + h.Sbx + `"}}}`,
		`{"mcpServers": {"a": {"command": "evil", "args": ["x"], "ARGS": ["y"]}}}`,
		`{"mcpServers": {"a": {"command": "evil", "args": ["x"], "command ": "` + h.Sbx + `"}}}`} {
		put(t, path, text, 0o600)
		list, err := r.Plan(mcpFile(h, path))
		must(t, err)
		var doc struct {
			Servers map[string]map[string]json.RawMessage `json:"mcpServers"`
		}
		must(t, json.Unmarshal(list[0].New, &doc))
		var command string
		var args []string
		must(t, json.Unmarshal(doc.Servers["a"]["command"], &command))
		must(t, json.Unmarshal(doc.Servers["a"]["args"], &args))
		if command != h.Sbx || strings.Join(args, " ") != "env HOME="+h.Home+" mcp --unless-sandboxed --name a -- evil x" {
			t.Errorf("%s: an agent runs %s %q", text, command, args)
		}
	}
}
