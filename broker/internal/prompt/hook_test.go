package prompt

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestHook(t *testing.T) {
	for _, c := range []struct {
		name, command string
		timeout       time.Duration
		want          Answer
	}{
		{"words", "echo allow tree session", 0, Answer{Allow: true, Scope: Tree, Life: ForSession, By: ByHook}},
		{"json", `echo '{"decision":"allow"}'`, 0, Answer{Allow: true, Scope: Once, Life: ForOnce, By: ByHook}},
		{"last line", "echo thinking; echo allow", 0, Answer{Allow: true, Scope: Once, Life: ForOnce, By: ByHook}},
		{"deny", "echo deny", 0, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"status", "echo allow; exit 3", 0, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"signal", "echo allow; kill -9 $$", 0, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"nonsense", "echo sure", 0, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"does not fit", "echo allow host", 0, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"endless", "yes allow", 300 * time.Millisecond, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"late", "sleep 60; echo allow", 200 * time.Millisecond, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"no such command", "/nonexistent/notifier", 0, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"leaves its output open for a moment", "sleep 2 & echo allow", 0, Answer{Allow: true, Scope: Once, Life: ForOnce,
			By: ByHook}},
		{"leaves its output open", "sleep 15 & echo allow", 0, Answer{Scope: Once, Life: ForOnce, By: ByHook}},
		{"only tells", "true", 0, Answer{Scope: Once, Life: ForOnce, By: ByTimeout}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.timeout == 0 {
				c.timeout = 10 * time.Second
			}
			timeout := 20 * time.Second
			if c.want.By == ByTimeout {
				timeout = 300 * time.Millisecond
			}
			q := NewQueue(Options{HookCommand: c.command, hookTimeout: c.timeout, Timeout: timeout})
			defer q.Close()
			got := q.Ask(context.Background(), read("/a/b/c"))
			if got.Last = 0; got != c.want { // which access it was asked with is not the command's to say
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// A command that is wrong refuses everything, so somebody has to hear of it.
func TestHookSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	file := read("/a/b")
	for command, want := range map[string]string{"exit 3": "exit status 3", "echo maybe": `unknown answer "maybe"`,
		"echo allow walk session": "use scope once, file, dir or tree", "echo deny": "", "echo allow dir": "",
		"yes deny | head -1000; echo allow dir": "more than 4096 bytes of output"} {
		heard := make(chan string, 1)
		q := NewQueue(Options{HookCommand: command, hookTimeout: time.Minute, Timeout: time.Minute,
			HookFailed: func(err error) { heard <- err.Error() }})
		a := q.Ask(context.Background(), file)
		q.Close()
		said := ""
		if want != "" && !a.Allow {
			said = <-heard
		}
		if !strings.Contains(said, want) || len(heard) > 0 || a.Allow != (command == "echo allow dir") {
			t.Errorf("%s: %+v, said %q", command, a, said)
		}
	}
}

// What a guest chose reaches the hook as data: nothing of it is expanded, and nothing passes for an option.
func TestHookGetsGuestTextAsData(t *testing.T) {
	dir := t.TempDir()
	path := "/a/$(touch " + dir + "/owned)`touch " + dir + "/owned`;touch " + dir + "/owned\n'\"<b>ok</b>\xff"
	q := NewQueue(Options{HookCommand: `cat >"` + dir +
		`/in"; printf '%s\n' "$SBX_QUESTION_TEXT" "$SBX_QUESTION_MARKUP" "$SBX_QUESTION_PATH" >"` + dir + `/env"; echo deny`})
	defer q.Close()
	q.Ask(context.Background(), Question{Exe: "/bin/--icon=x", Op: "open", Path: path})
	if _, err := os.Stat(filepath.Join(dir, "owned")); err == nil {
		t.Fatal("guest text was run by the shell")
	}
	in, err := os.ReadFile(filepath.Join(dir, "in"))
	if err != nil || !ascii(strings.TrimSuffix(string(in), "\n")) || !json.Valid(in) ||
		!strings.Contains(string(in), `\udcff`) {
		t.Errorf("%q, %v", in, err)
	}
	env, _ := os.ReadFile(filepath.Join(dir, "env"))
	lines := strings.Split(strings.TrimSuffix(string(env), "\n"), "\n")
	if len(lines) != 3 || lines[0][0] == '-' || strings.Contains(lines[1], "<") {
		t.Errorf("%q", lines)
	}
}

func TestHookEndsWithItsQuestion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	q := NewQueue(Options{HookCommand: "echo $$ >" + file + ".new; mv " + file + ".new " + file + "; sleep 900"})
	defer q.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pid := make(chan int, 1)
	go func() { // the question ends when its command runs
		defer cancel()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if b, err := os.ReadFile(file); err == nil {
				n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
				pid <- n
				return
			}
		}
		pid <- 0
	}()
	q.Ask(ctx, read("/a/b"))
	n := <-pid
	if n == 0 {
		t.Fatal("the command did not begin")
	}
	for end := time.Now().Add(time.Minute); syscall.Kill(n, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the command goes on")
		}
	}
}
