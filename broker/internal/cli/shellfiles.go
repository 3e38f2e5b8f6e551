//go:build linux

package cli

import (
	"os"
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// A shell reads a handful of files when it starts. They are one question, at the first shell that a person runs on a
// terminal; the answer is a setting, yes or no.

// askShellFiles asks it, where nobody has answered it yet.
func (t *term) askShellFiles(r *request.Request) {
	if r.DryRun || r.JSON || !t.startsShell(r.Argv) || !launch.HasTerminal([3]*os.File{t.Std[0], nil, t.Std[2]}) {
		return
	}
	facts := host.Read(t.Env)
	files := startupFiles(facts.Home)
	if len(files) == 0 {
		return
	}
	project := r.ProjectRoot(facts)
	s, err := r.Settings(t.Env, facts, project)
	if err != nil || len(s.Origins["fs.shell_files"]) > 0 || s.Mode(facts) != "dynamic" || s.Profile.Root() == "strict" ||
		s.Sandbox.Prompt != "auto" && s.Sandbox.Prompt != "tty" {
		return // the run says what is wrong with them
	}
	t.note("sbx: show your shells' start-up files in every sandbox? " + strings.Join(files, " ") +
		"\nsbx: they are read-only there, and so is any password in them  [y]es [n]o  ")
	word := map[string]string{"y": "show", "yes": "show", "n": "hide", "no": "hide"}[strings.ToLower(t.readLine())]
	if word == "" {
		t.note("sbx: not answered: each is asked about by itself this time\n")
		return
	}
	file, err := request.Remember(t.Env, facts, "fs.shell_files", word)
	if err != nil {
		t.warn("remembering the answer: " + err.Error())
		t.note("hint: write shell_files = \"" + word + "\" below [fs] there, or use --shell-files " + word + "\n")
		return
	}
	t.note("sbx: remembered: fs.shell_files = \"" + word + "\" in " + quoting.Quote(file) + "\n")
}

// startsShell says whether a command line starts a shell that reads those files: the person's own where it is empty.
func (t *term) startsShell(argv []string) bool {
	if len(argv) == 0 {
		return request.IsShell(path.Base(host.Lookup(t.Env, "SHELL")))
	}
	if !request.IsShell(path.Base(argv[0])) {
		return false
	}
	for _, a := range argv[1:] {
		switch {
		case !strings.HasPrefix(a, "-"), !strings.HasPrefix(a, "--") && strings.ContainsAny(a, "cf"), a == "--norc",
			a == "--no-config", a == "--no-rcs", a == "--command":
			return false // a script, a command, or none of the files
		}
	}
	return true
}

// startupFiles are those that there are, as a person writes them.
func startupFiles(home string) (out []string) {
	for _, f := range request.ShellStartup() {
		if home != "" && host.Exists(strings.TrimSuffix(home+f[1:], "/")) {
			out = append(out, quoting.Quote(f))
		}
	}
	return out
}

// readLine reads a line from the terminal and no byte more: what follows is the program's.
func (t *term) readLine() string {
	var line []byte
	for b := []byte{0}; len(line) < 100; {
		if n, err := t.Std[0].Read(b); n != 1 || err != nil || b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return strings.TrimSpace(string(line))
}
