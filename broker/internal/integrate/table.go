package integrate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/quoting"
)

// Host is what an integration is planned from.
type Host struct {
	Home, Config, Data string   // of the user: $HOME, $XDG_CONFIG_HOME, $XDG_DATA_HOME
	Path               []string // $PATH
	Sbx                string   // this program's file
	Own                []string // the variables that sbx goes by, as they are now
}

// call is how everything that is written calls sbx: by its place, and so that nothing of its caller's environment
// decides what is granted. An agent may have read a project's .env. The values are those of now, since where a
// person's settings are is known to nobody later: the password file knows the home alone.
func (h *Host) call(words ...string) []string {
	return slices.Concat([]string{h.Sbx, "env"}, h.Own, words)
}

// script is a command line for a shell, quoted where that is needed.
func script(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; quoting.Shell(w) != w {
			out[i] = quoting.Script(w)
		}
	}
	return strings.Join(out, " ")
}

// Agent is one row: a program that people use, and what puts sbx below it.
type Agent struct {
	Name     string
	Programs []string // what it is called on PATH; none: it is no program that can be looked for
	Below    string   // how sbx gets below it, for people
	files    func(h *Host, found string) ([]file, error)
}

// file is one file that an integration writes.
type file struct {
	path string
	mode uint32
	text []byte            // the whole of it, where it is sbx's own
	edit func(*edit) error // or what is set in somebody else's
}

// Agents is the table, in the order in which it is shown.
func Agents() []Agent {
	bwrap := func(name string, programs ...string) Agent {
		return Agent{name, programs, "its own sandbox calls sbx for bwrap", bwrapFile}
	}
	return []Agent{
		{"claude-code", []string{"claude"}, "claude starts in a sandbox; its own sandbox is on where it is started otherwise",
			func(h *Host, found string) ([]file, error) {
				return with(h.wrapper("claude-code", "claude", found))(file{path: h.Home + "/.claude/settings.json",
					edit: setting(true, "sandbox", "enabled")})
			}},
		bwrap("codex", "codex"),
		bwrap("gemini-cli", "gemini"),
		bwrap("srt", "srt"),
		bwrap("vscode", "code"),
		{"opencode", []string{"opencode"}, "a plugin runs each of its commands in a sandbox", opencodeFile},
		{"goose", []string{"goose"}, "each of its stdio extensions starts in a sandbox", gooseFile},
		{"cursor", []string{"cursor-agent"}, "cursor-agent starts in a sandbox; its own has no network",
			func(h *Host, found string) ([]file, error) {
				return with(h.wrapper("cursor-agent", "cursor-agent", found))(file{path: h.Home + "/.cursor/sandbox.json",
					edit: setting("deny", "networkPolicy", "default")})
			}},
		{"aider", []string{"aider"}, "aider starts in a sandbox", func(h *Host, found string) ([]file, error) {
			return with(h.wrapper("aider", "aider", found))()
		}},
		{"bwrap", nil, "every program that calls bwrap from PATH calls sbx", bwrapFile},
	}
}

// with puts further files behind one that may not be planned.
func with(f file, err error) func(...file) ([]file, error) {
	return func(more ...file) ([]file, error) { return append([]file{f}, more...), err }
}

// Names are the agents' names.
func Names() []string {
	var names []string
	for _, a := range Agents() {
		names = append(names, a.Name)
	}
	return names
}

// Find returns the row of an agent.
func Find(name string) (Agent, bool) {
	list := Agents()
	i := slices.IndexFunc(list, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return list[i], true
}

// bin is where programs that stand before others are put: a directory of sbx's own, so that none of a person's is
// replaced.
func (h *Host) bin() string { return h.Data + "/sbx/bin" }

// Leads says whether the directory of programs that stand before others does so on PATH, for a program found there.
func (h *Host) Leads(found string) bool {
	own := slices.Index(h.Path, h.bin())
	other := slices.Index(h.Path, filepath.Dir(found))
	return own >= 0 && (other < 0 || own < other)
}

// lookUp finds a program on PATH, apart from what sbx has put there.
func (h *Host) lookUp(names ...string) string {
	for _, name := range names {
		for _, dir := range h.Path {
			p := filepath.Join(dir, name)
			if st, err := os.Stat(p); dir != h.bin() && filepath.IsAbs(dir) && err == nil && st.Mode().IsRegular() &&
				st.Mode()&0o111 != 0 {
				return p
			}
		}
	}
	return ""
}

// own is a program of sbx's that stands before another of that name.
func (h *Host) own(name string, words ...string) file {
	text := "#!/bin/sh\n# Written by sbx integrate, which takes it back with --undo.\nexec " +
		script(h.call(words...)) + " \"$@\"\n"
	return file{path: h.bin() + "/" + name, mode: 0o755, text: []byte(text)}
}

// wrapper is a program that starts another in a sandbox. It names both by their places, so that no directory of a
// project's comes into it. Whether it is inside of a sandbox already is for sbx to find out.
func (h *Host) wrapper(agent, name, found string) (file, error) {
	if found == "" {
		return file{}, fmt.Errorf("%s is not on PATH", name)
	}
	return h.own(name, "run", "--unless-sandboxed", "--agent", agent, "--", found), nil
}

// bwrapFile is sbx in bubblewrap's place. Callers follow links, so it is a file.
func bwrapFile(h *Host, _ string) ([]file, error) {
	return []file{h.own("bwrap", "bwrap")}, nil
}

// opencodeFile is a plugin: opencode loads what lies in that directory, and has no sandbox of its own. The shell that
// opencode starts for a command is the plugin's to care for, since it comes before sbx.
func opencodeFile(h *Host, _ string) ([]file, error) {
	text := `// Written by sbx integrate opencode; sbx integrate opencode --undo takes it back.
const quote = (s) => "'" + s.replaceAll("'", "'\\''") + "'"
// A project's .env may have set these, by which the shell that opencode starts would run something before sbx.
const early = /^(LD_.*|BASH_.*|ENV|SHELL|SHELLOPTS|PS4|ZDOTDIR|XDG_CONFIG_HOME)$/
export const Sbx = async () => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool !== "bash") return
    for (const name of Object.keys(process.env)) if (early.test(name)) delete process.env[name]
    output.args.command = ` + jsString(script(h.call("run", "-q", "--unless-sandboxed", "--", "/bin/sh", "-c"))) +
		` + " " + quote(output.args.command)
  },
})
`
	return []file{{path: h.Config + "/opencode/plugin/sbx.js", mode: 0o644, text: []byte(text)}}, nil
}

// jsString is a text as JavaScript reads it: as JSON has it.
func jsString(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
