//go:build linux

package selftest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// screen is a tmux as a person has it before him, of some columns.
type screen struct {
	t    *testing.T
	home string
	sock string
	in   io.Writer // tmux's commands, and what comes of them: a client for each would cost more than what is shown
	out  *bufio.Reader
	seen strings.Builder // what was shown, for the golden
}

// step is what a person does and sees: a line that is typed, or a key at a question, until the screen shows what is
// awaited, which is kept.
type step struct {
	name, line, key, until string
}

// readmeSteps are the session that README.md begins with. The question's help is looked at as well.
func readmeSteps() []step {
	return []step{
		{name: "the first run", line: "sbx run bash", until: `\[n\]o`},
		{name: "yes", line: "y", until: `questions here[^$]*\$ $`},
		{name: "a question", line: "cat ~/notes/todo.md", until: `\?\]$`},
		{name: "its help", key: "?", until: `who: [^$]*\?\]$`},
		{name: "for the session", key: "s", until: `mend the roof\n\$ $`},
		{name: "a secret", line: "cat ~/.ssh/id_ed25519", until: `No such file[^$]*\$ $`},
		{name: "a hook", line: "echo evil > .git/hooks/pre-commit", until: `Read-only[^$]*\$ $`},
		{name: "git's settings", line: "git config core.fsmonitor /tmp/x", until: `could not[^$]*\$ $`},
		{line: "exit", until: `policy add allow[^$]*\$ $`}, // the summary's lines break by the length of numbers
	}
}

// daySteps are what else a person sees of sbx in a day: a summary, errors, lists and explanations.
func daySteps() []step {
	return []step{
		{name: "a summary", line: "sbx run --name today --prompt deny -- cat ~/notes/a ~/.ssh/id_ed25519",
			until: prompted},
		{name: "why", line: "sbx why ~/notes/todo.md", until: prompted},
		{name: "why a secret", line: "sbx why ~/.ssh/id_ed25519", until: prompted},
		{name: "why the last", line: "sbx why --last", until: prompted},
		{name: "an option of another program", line: "sbx run --allow-net -- true", until: prompted},
		{name: "a misspelt option", line: "sbx run --ephemral -- true", until: prompted},
		{name: "no such program", line: "sbx run -- no-such-program", until: prompted},
		{name: "no such session", line: "sbx attach no-such-session", until: prompted},
		{name: "a detached session", line: "sbx run --detach --name night -- sh -c 'echo hello; exec sleep 1000'",
			until: prompted},
		{name: "logs", line: "sh -c 'until sbx logs night | grep hello; do :; done'", until: prompted},
		{line: "sbx prune", until: prompted}, // the first session had a name of chance
		{line: "sbx run -q --name evening -- true", until: prompted},
		{name: "ls", line: "sbx ls --all", until: prompted},
		{name: "ps", line: "sbx ps night", until: prompted},
		{name: "kill", line: "sbx kill night", until: prompted},
		{name: "help", line: "sbx help logs", until: prompted},
	}
}

// TestScreens types the session of README.md into three shells in terminals of three widths, and compares what a person
// sees with what is kept in testdata/goldens, the same for all shells. Digits and the session's own words are masked.
func TestScreens(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Tool(t, "tmux", "zsh", "fish")
	if !strings.HasPrefix(shop.dir, "/home/sbx-selftest-") {
		need.Fact(t, false, "root, for homes whose paths are always as long")
	}
	onScreens(t, "", "", func(t *testing.T, s *screen, _ string, columns int) {
		for _, st := range append(readmeSteps(), daySteps()...) {
			s.do(st)
		}
		compareGolden(t, fmt.Sprintf("screen%d.txt", columns), s.seen.String())
	})
}

// TestSummaryIsSeen: what sbx says at the end is on the screen after a program that has left a string open. What the
// program itself wrote into that is not, which is the control.
func TestSummaryIsSeen(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Tool(t, "tmux")
	s := openScreen(t, "summary", 130, "bash")
	s.files(map[string]string{"project/open": "echo all: >>Makefile\nprintf '" + `\033Pq\007` + "unseen'\n"})
	for _, mode := range []string{"static", "dynamic --prompt deny"} {
		s.clear()
		s.typed("sbx run --mode " + mode + " -- sh open; printf '" + `\033\\` + "'")
		if shown := s.await(prompted); !strings.Contains(shown, "\nsbx: changed: ") || strings.Contains(shown, "unseen") {
			t.Errorf("%s: what was changed is not on the screen, or what is in the string is:\n%s", mode, shown)
		}
	}
}

// TestSlowPrompt: what is typed at a prompt is read before the next one is awaited, however late the shell reads it.
func TestSlowPrompt(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Tool(t, "tmux")
	s := openScreen(t, "slow", 80, "slow")
	s.typed("go on")
	if shown := s.await(`\$ $`); !strings.Contains(shown, "read: go on\n") {
		t.Errorf("this was taken for the prompt that follows:\n%s", shown)
	}
}

// onScreens runs a test in each shell at each width, in homes whose names begin with home. The tests' names begin with
// name. Without SBX_THOROUGH=1 it is bash alone at each.
func onScreens(t *testing.T, name, home string, do func(t *testing.T, s *screen, shell string, columns int)) {
	t.Helper()
	for i, shell := range []string{"bash", "zsh", "fish"} {
		for k, columns := range []int{130, 80, 40} {
			if shell != "bash" && k != i && !need.Thorough() {
				continue
			}
			t.Run(fmt.Sprintf("%s%s/%d", name, shell, columns), func(t *testing.T) {
				t.Parallel()
				do(t, openScreen(t, fmt.Sprintf("%s%d%d", home, i, columns/40), columns, shell), shell, columns)
			})
		}
	}
}

// homeLength is that of every home's path, so that lines break in the same places.
const homeLength = 44

// screenRows is what a terminal has of them.
const screenRows = 24

// prompts start the shells that screens are of, each with a prompt of the last command's status and a dollar sign, and
// nothing else of its own: what a person sees must not hang on how he has set up his shell.
func prompts() map[string][]string {
	return map[string][]string{
		"bash": {"env", "PS1=$? $ ", "bash", "--norc", "--noprofile"},
		"slow": {"bash", "-c", `while stty -echo; do printf '0 $ '; sleep 2; stty echo; read -re x; echo "read: $x"; done`},
		"zsh":  {"env", "PS1=%? $ ", "zsh", "-f", "-o", "nopromptsp"},
		"fish": {"sh", "-c", `XDG_RUNTIME_DIR=~/.run exec "$0" "$@"`, "fish", "--no-config", "-C",
			"set fish_greeting; function fish_prompt; echo -n $status '$ '; end; " +
				"function fish_right_prompt; end; set -g fish_autosuggestion_enabled 0"},
	}
}

// openScreen opens a shell in the project of a new home, whose name begins with name.
func openScreen(t *testing.T, name string, columns int, shell string) *screen {
	t.Helper()
	home := filepath.Join(shop.dir, name)
	home += strings.Repeat("0", homeLength-len(home))
	s := &screen{t: t, home: home, sock: filepath.Join(home, "tmux")}
	s.files(map[string]string{"project/main.c": "int main;\n", "notes/todo.md": "mend the roof\n", "notes/a": "a\n",
		".ssh/id_ed25519": "KEY\n", ".local/bin/agent": "#!/bin/sh\necho agent at work\n", ".bashrc": "PS1='$ '\n",
		".config/fish/config.fish": "", ".run/x": ""})
	s.user("git", "init", "-q", filepath.Join(home, "project"))
	// Shells list what is on PATH while one types, and ask about what is not granted; this is.
	path := "PATH=" + filepath.Join(home, ".local/bin") + ":/usr/bin:/bin"
	if err := os.Symlink(shop.sbx, filepath.Join(home, ".local/bin/sbx")); err != nil {
		t.Fatal(err)
	}
	tmux := []string{"tmux", "-S", s.sock, "-f", "/dev/null"}
	s.user(slices.Concat(tmux, []string{"new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(screenRows),
		"-c", filepath.Join(home, "project"), "env", path, "EDITOR=true", "SHELL=/usr/bin/" + shell}, prompts()[shell])...)
	s.control(tmux)
	s.await(empty)
	return s
}

// files makes files of the home.
func (s *screen) files(list map[string]string) {
	s.t.Helper()
	for name, text := range list {
		p := filepath.Join(s.home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := shop.own(s.home); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/usr/bin/env", args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = s.home, shop.attr(), append(shop.env(s.home, s.home), "PS1=$ ")
	return cmd
}

func (s *screen) user(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// control attaches a client that is told commands line by line, and has no say in how large the terminal is.
func (s *screen) control(tmux []string) {
	s.t.Helper()
	cmd := s.command(append(slices.Clone(tmux), "-C", "attach-session", "-f", "ignore-size,no-output")...)
	in, err := cmd.StdinPipe()
	must(s.t, err)
	out, err := cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, cmd.Start())
	s.in, s.out = in, bufio.NewReader(out)
	s.t.Cleanup(func() {
		s.user(append(slices.Clone(tmux), "kill-server")...)
		_ = cmd.Wait()
	})
}

// tmux has the client carry out a command. What comes of it stands between two lines with the same number, and ends
// with a 1 where it was the client's.
func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.in, strings.TrimSpace(shellLine(args))); err != nil {
		s.t.Fatal(err)
	}
	var shown strings.Builder
	for number := ""; ; {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%q: tmux has gone: %v", args, err)
		}
		switch f := strings.Fields(line); {
		case number == "" && len(f) == 4 && f[0] == "%begin" && f[3] == "1":
			number = f[2]
		case number == "":
		case len(f) == 4 && f[0] == "%end" && f[2] == number:
			return shown.String()
		case len(f) == 4 && f[0] == "%error" && f[2] == number:
			s.t.Fatalf("%q: %s", args, shown.String())
		default:
			shown.WriteString(line)
		}
	}
}

// shellLine quotes words so that a shell reads them, or tmux.
func shellLine(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString("'" + strings.ReplaceAll(a, "'", `'\''`) + "' ")
	}
	return b.String()
}

// empty is a screen with nothing but the prompt, and prompted one with a prompt below.
const (
	empty    = `^(\d+ )?\$ $`
	prompted = `\n(\d+) \$ $`
)

// shown is the screen without what is empty below.
func (s *screen) shown() string {
	lines, prompt := strings.Split(s.tmux("capture-pane", "-p"), "\n"), regexp.MustCompile(empty)
	for i, l := range lines {
		if l = strings.TrimRight(l, " "); prompt.MatchString(l + " ") {
			l += " "
		}
		lines[i] = l
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// await waits for a screen that matches and stands still.
func (s *screen) await(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	before := ""
	for end := time.Now().Add(dialogPatience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		now := s.shown()
		if now == before && re.MatchString(now) {
			return now
		}
		before = now
	}
	s.t.Fatalf("%s was never shown:\n%s", pattern, before)
	return ""
}

// typed types a line, and Enter once it is on the screen. What is awaited next may be a prompt, and the one that stands
// there until a slow shell has read the line is none.
func (s *screen) typed(line string) {
	s.t.Helper()
	was := s.shown()
	s.tmux("send-keys", "-l", line)
	for end := time.Now().Add(dialogPatience); ; time.Sleep(10 * time.Millisecond) {
		now := s.shown()
		if now != was && strings.Contains(unbroken(now), unbroken(line)) {
			break
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s was typed and never shown:\n%s", line, now)
		}
	}
	s.tmux("send-keys", "Enter")
}

// unbroken is a text without blanks and breaks: where a screen breaks a line it shows no blank at its end.
func unbroken(s string) string { return strings.Join(strings.Fields(s), "") }

func (s *screen) clear() {
	s.t.Helper()
	s.typed("clear")
	s.await(empty)
}

func (s *screen) do(st step) {
	s.t.Helper()
	if st.line != "" {
		if strings.HasSuffix(s.shown(), "$ ") {
			s.clear()
		}
		s.typed(st.line)
	} else {
		s.press(st)
	}
	if shown := s.await(st.until); st.name != "" {
		// The line that was typed may come to the screen after the question that it leads to.
		if at := regexp.MustCompile(`(?m)^(who: |\[[a-z]+\]? )`).FindStringIndex(shown); at != nil {
			shown = shown[at[0]:]
		}
		fmt.Fprintf(&s.seen, "== %s\n%s\n", st.name, masked(shown))
	}
}

// press types a key at a question, again until it is taken: one that comes too early does not count.
func (s *screen) press(st step) {
	was := s.shown()
	for end := time.Now().Add(dialogPatience); time.Now().Before(end) && s.shown() == was; {
		time.Sleep(time.Second)
		if s.shown() == was {
			s.tmux("send-keys", st.key)
		}
	}
}

// masked hides what is another each time: numbers, the session's name, and the word of its questions.
func masked(text string) string {
	alike := func(in string) string { return regexp.MustCompile(`[a-z0-9]`).ReplaceAllString(in, "x") }
	text = regexp.MustCompile(`\(\n?s\n?i\n?d\n? ?\n?(?:[a-z0-9]\n?){6}\)`).ReplaceAllStringFunc(text, alike)
	text = regexp.MustCompile(`\[(?:[a-z]\n?){6}\]`).ReplaceAllStringFunc(text, alike)
	text = regexp.MustCompile(`pid [0-9]+`).ReplaceAllString(text, "pid 0")
	text = regexp.MustCompile(`project-\n?(?:[0-9a-f]\n?){16}`).ReplaceAllStringFunc(text, func(in string) string {
		return "project-" + alike(strings.TrimPrefix(in, "project-"))
	})
	text = regexp.MustCompile(`\[[0-9]+\]`).ReplaceAllString(text, "[0]")
	text = regexp.MustCompile(`(?m)^ +[0-9]+ .*`).ReplaceAllStringFunc(text, alikeCells)
	text = regexp.MustCompile(`[0-9]+s +`).ReplaceAllStringFunc(text, func(in string) string { // an age
		return "0s" + strings.Repeat(" ", len(in)-2)
	})
	text = regexp.MustCompile(`[0-9]`).ReplaceAllString(text, "0")
	return regexp.MustCompile(`(0\n?)/(\n?0)`).ReplaceAllString(text, "${1}0$2") // the workshop's name has not always as many
}

// alikeCells masks the numbers of a row of sbx ps where they stand.
func alikeCells(row string) string {
	return regexp.MustCompile(` *[0-9.]+[sK]?( |$)`).ReplaceAllStringFunc(row, func(in string) string {
		number := strings.TrimSpace(in)
		unit := strings.Trim(number, "0123456789.")
		end := in[strings.Index(in, number)+len(number):]
		return strings.Repeat(" ", len(in)-len(unit)-1-len(end)) + "0" + unit + end
	})
}
