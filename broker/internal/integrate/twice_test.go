package integrate

import (
	"os"
	"strings"
	"testing"
)

// again is what sbx integrate does for one that was made before.
func again(t *testing.T, r Records, name string, files []file) error {
	t.Helper()
	list, err := r.Plan(files)
	rec, _ := r.Read(name)
	if err == nil && rec != nil {
		_, err = r.Undo(rec)
		must(t, err)
		list, err = r.Plan(files)
	}
	if err == nil {
		_, err = r.Apply(name, list)
	}
	return err
}

// TestUndoAfterTwoLeavesTheEditAlone: what was changed by hand between two integrations, or after one, is what is left
// of them, in every file of every agent.
func TestUndoAfterTwoLeavesTheEditAlone(t *testing.T) {
	edits := map[string][2]string{ // what a person changes in files that are not sbx's own
		".claude/settings.json": {`"model":"x"`, `"model": "y", "more": [1, {"z": null}]`},
		".cursor/sandbox.json":  {`"mine":1`, `"mine":2,"more":{}`},
		".config/goose/config.yaml": {"    envs: {}\nlast: 1\n",
			"    - --more\n    envs:\n      K: v\nlast: 2\n  # by hand\n"},
	}
	before := map[string]string{".claude/settings.json": `{ "model":"x" , "theme": "dark"}`,
		".cursor/sandbox.json": `{"mine":1}`, ".config/goose/config.yaml": goose}
	for _, a := range Agents() {
		for _, twice := range []bool{false, true} {
			h, r := place(t, append(a.Programs, "bwrap")...)
			must(t, os.MkdirAll(h.Home+"/.cursor", 0o755))
			for name, text := range before {
				put(t, h.Home+"/"+name, text, 0o600)
			}
			want := tree(t, h.Home)
			files, err := a.files(h, h.lookUp(a.Programs...))
			must(t, err)
			must(t, again(t, r, a.Name, files))
			for name, e := range edits {
				now := content(t, h.Home+"/"+name)
				if !strings.Contains(now, e[0]) {
					t.Fatalf("%s: %s has nothing to edit: %s", a.Name, name, now)
				}
				put(t, h.Home+"/"+name, strings.Replace(now, e[0], e[1], 1), 0o600)
				want[h.Home+"/"+name] = "-rw------- " + strings.Replace(before[name], e[0], e[1], 1)
			}
			if twice {
				must(t, again(t, r, a.Name, files))
			}
			undo(t, r, a.Name)
			must(t, os.RemoveAll(h.Home+"/.state"))
			after := tree(t, h.Home)
			for p, text := range want {
				if after[p] != text {
					t.Errorf("%s, twice %v: %s is\n%s\nwant\n%s", a.Name, twice, p, after[p], text)
				}
				delete(after, p)
			}
			for p := range after {
				t.Errorf("%s, twice %v: left %s", a.Name, twice, p)
			}
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// TestChangedFileOfSbxIsKept: one of sbx's own that was changed by hand is not written again, and the record stays, so
// that all else is taken back.
func TestChangedFileOfSbxIsKept(t *testing.T) {
	for _, name := range []string{"claude-code", "opencode", "codex", "cursor", "aider"} {
		h, r := place(t, "claude", "opencode", "codex", "cursor-agent", "aider")
		a, _ := Find(name)
		put(t, h.Home+"/.claude/settings.json", "{}", 0o600)
		files, err := a.files(h, h.lookUp(a.Programs...))
		must(t, err)
		must(t, again(t, r, name, files))
		put(t, files[0].path, "# mine\n", 0o755)
		h.Own = append(h.Own, "XDG_CONFIG_HOME=/c")
		files, err = a.files(h, h.lookUp(a.Programs...))
		must(t, err)
		if err := again(t, r, name, files); err == nil || !strings.Contains(err.Error(), "changed since sbx wrote it") {
			t.Errorf("%s: %v", name, err)
		}
		undo(t, r, name)
		if got := content(t, files[0].path); got != "# mine\n" {
			t.Errorf("%s: %q", name, got)
		}
		if got := content(t, h.Home+"/.claude/settings.json"); got != "{}" {
			t.Errorf("%s: the settings are %s", name, got)
		}
	}
}

// TestUndoTakesGooseBackAsGooseWritesIt: goose writes its file anew, with other quotes and without comments. An
// extension that a person has put into a sandbox stays there.
func TestUndoTakesGooseBackAsGooseWritesIt(t *testing.T) {
	h, r := place(t, "goose")
	own := "  mine:\n    type: stdio\n    cmd: " + h.Sbx + "\n    args:\n    - mcp\n    - --name\n    - mine\n    - --\n" +
		"    - server\n"
	bare := "  bare:\n    type: stdio\n    cmd: 'it''s'\n"
	empty := "  empty:\n    args: []\n    cmd: x\n    type: stdio\n"
	text := strings.Replace(goose, "last: 1\n", own+bare+empty+"last: 1\n", 1)
	put(t, h.Config+"/goose/config.yaml", text, 0o600)
	integrate(t, h, r, "goose")
	now := content(t, h.Config+"/goose/config.yaml")
	if strings.Count(now, h.Sbx) != 4 {
		t.Fatalf("the control: %s", now)
	}
	anew := strings.ReplaceAll(strings.ReplaceAll(now, `"`, ""), "  bare:", "  renamed:")
	put(t, h.Config+"/goose/config.yaml", anew, 0o600)
	if out := undo(t, r, "goose"); out[0].What != Edited {
		t.Errorf("%v", out)
	}
	want := strings.Replace(text, "  bare:", "  renamed:", 1)
	if got := content(t, h.Config+"/goose/config.yaml"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestUndoKeepsEditsOfServers: what a person has changed of a server's own line stays its line; where sbx's part was
// changed nothing of it is taken apart.
func TestUndoKeepsEditsOfServers(t *testing.T) {
	const before = `{"mcpServers":{"a":{"command":"npx","args":["-y","x"]},"b":{"command":"bare"}},` +
		`"mcp":{"c":{"command":["u","y"]}}}`
	for _, c := range []struct{ from, to, want string }{
		{`"-y"`, `"-y", "--more"`, strings.Replace(before, `"-y"`, `"-y","--more"`, 1)},
		{`"npx"`, `"bunx"`, strings.Replace(before, "npx", "bunx", 1)},
		{`"bare"`, `"bare", "arg"`, strings.Replace(before, `"bare"`, `"bare","args":["arg"]`, 1)},
		{`"u"`, `"v"`, strings.Replace(before, `"u"`, `"v"`, 1)},
		{`"--unless-sandboxed"`, `"--rw", "/data"`, "SBX env HOME mcp --rw /data --name a -- npx -y x"},
	} {
		for _, twice := range []bool{false, true} {
			h, r := place(t)
			path := h.Home + "/mcp.json"
			put(t, path, before, 0o600)
			must(t, again(t, r, mcpName(path), mcpFile(h, path)))
			put(t, path, strings.Replace(content(t, path), c.from, c.to, 1), 0o600)
			sbx := strings.HasPrefix(c.want, "SBX")
			if twice {
				if err := again(t, r, mcpName(path), mcpFile(h, path)); (err != nil) != sbx {
					t.Errorf("%s: a second time: %v", c.to, err)
				}
			}
			undo(t, r, mcpName(path))
			got := content(t, path)
			if stays := strings.Contains(got, h.Sbx); stays != sbx {
				t.Errorf("%s: %s", c.to, got)
			} else if !sbx && !same([]byte(got), []byte(c.want)) {
				t.Errorf("%s, twice %v: %s\nwant %s", c.to, twice, got, c.want)
			}
		}
	}
}
