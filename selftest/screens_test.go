package selftest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
		{line: "exit", until: `exit\n[^$]*\$ $`}, // the summary's lines break by the length of numbers
	}
}

// TestScreens types the session of README.md into terminals of three widths and compares what a person sees with what
// is kept in testdata/goldens. Digits and the session's own words are masked.
func TestScreens(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	if _, err := exec.LookPath("tmux"); err != nil {
		need.Fact(t, false, "tmux")
	}
	if !strings.HasPrefix(shop.dir, "/home/sbx-selftest-") {
		need.Fact(t, false, "root, for homes whose paths are always as long")
	}
	for _, columns := range []int{130, 80, 40} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			s := openScreen(t, columns)
			for _, st := range readmeSteps() {
				s.do(st)
			}
			compareGolden(t, fmt.Sprintf("screen%d.txt", columns), s.seen.String())
		})
	}
}

// homeLength is that of every home's path, so that lines break in the same places.
const homeLength = 44

func openScreen(t *testing.T, columns int) *screen {
	t.Helper()
	home := filepath.Join(shop.dir, fmt.Sprint(columns/40))
	home += strings.Repeat("0", homeLength-len(home))
	for name, text := range map[string]string{"project/main.c": "int main;\n", "notes/todo.md": "mend the roof\n",
		".ssh/id_ed25519": "KEY\n", ".bashrc": "PS1='$ '\n"} {
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := shop.own(home); err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, home: home, sock: filepath.Join(home, "tmux")}
	s.user("git", "init", "-q", filepath.Join(home, "project"))
	s.tmux("new-session", "-d", "-x", fmt.Sprint(columns), "-y", "24", "-c", filepath.Join(home, "project"),
		"env", "PS1=$ ", "bash", "--norc", "--noprofile")
	t.Cleanup(func() { s.tmux("kill-server") })
	s.await(`^\$ $`)
	return s
}

func (s *screen) user(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("/usr/bin/env", args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = s.home, shop.attr(), append(shop.env(s.home, s.home), "PS1=$ ")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	return s.user(append([]string{"tmux", "-S", s.sock, "-f", "/dev/null"}, args...)...)
}

// shown is the screen without what is empty below.
func (s *screen) shown() string {
	lines := strings.Split(s.tmux("capture-pane", "-p"), "\n")
	for i, l := range lines {
		if l = strings.TrimRight(l, " "); l == "$" {
			l = "$ "
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

func (s *screen) do(st step) {
	s.t.Helper()
	if st.line != "" {
		if strings.HasSuffix(s.shown(), "$ ") {
			s.tmux("send-keys", "clear", "Enter")
			s.await(`^\$ $`)
		}
		s.tmux("send-keys", "-l", st.line)
		s.tmux("send-keys", "Enter")
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
	text = regexp.MustCompile(`[0-9]`).ReplaceAllString(text, "0")
	return regexp.MustCompile(`(0\n?)/(\n?0)`).ReplaceAllString(text, "${1}0$2") // the workshop's name has not always as many
}
