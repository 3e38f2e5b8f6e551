//go:build linux

package selftest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// typing is an interactive shell, and what makes a command show that is completed like sbx and prints the words that it
// is given, each in <>. After fake it is completed with $HOSTILE, whatever sbx would say.
type typing struct {
	start []string
	setup string // the function's file is FUNCTION
}

// hostile is what a completion must not let act: a shell that puts it into a line unquoted would run it.
const hostile = `queer $(touch pwned) 'x' "y" ;touch pwned`

func typings() map[string]typing {
	const show = `show() { printf G; printf OT; printf '<%s>' "$@"; echo; }; ` +
		`fake() { sbx() { printf 'words\n%s\n' "$HOSTILE"; }; }; `
	return map[string]typing{
		"bash": {[]string{"bash", "--norc", "--noprofile", "-i"}, show + "source FUNCTION; complete -F _sbx show"},
		"zsh": {[]string{"zsh", "-f", "-i"},
			"unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -D -u; " + show +
				"source FUNCTION; compdef _sbx show"},
		"fish": {[]string{"fish", "--no-config", "-i"},
			`function show; printf G; printf OT; printf '<%s>' $argv; echo; end; ` +
				`function fake; function sbx; printf 'words\n%s\n' "$HOSTILE"; end; end; ` +
				`source FUNCTION; complete -c show -f -a '(__sbx_complete)'`},
	}
}

// TestCompletionTyped has a person press the tab key in every shell, on a terminal: profiles, verbs, open questions and
// kept sessions are put into the line as the words that they are, and no name runs anything.
func TestCompletionTyped(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	home := filepath.Join(shop.dir, "completiontyped")
	for dir, text := range map[string]string{"project/x": "",
		".config/sbx/config.toml": "[profiles.odd]\nextends = \"strict\"\n",
		"notes/todo.md":           "mend the roof\n", ".local/state/sbx/sessions/keen$(touch pwned)/kept": ""} {
		p := filepath.Join(home, dir)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(home, ".local/state/sbx/sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(home); err != nil {
		t.Fatal(err)
	}
	as := func(args ...string) string { return completionUser(t, home, args...) }
	as(shop.sbx, "run", "-q", "--name", "kept1", "--ephemeral", "--keep", "--", "sh", "-c", "echo x >made")
	as(shop.sbx, "run", "-q", "--detach", "--name", "running1", "--prompt", "socket", "--", "cat",
		filepath.Join(home, "notes/todo.md"))
	defer as(shop.sbx, "kill", "running1")
	id := openQuestion(t, as)
	lines := []struct{ typed, want string }{
		{"show run --profile od\t", "<run><--profile><odd>"}, {"show run --profile=od\t", "<run><--profile=odd>"},
		{"show policy rem\t", "<policy><remove>"}, {"show approve \t", "<approve><" + id + ">"},
		{"show apply ke\t", "<apply><kept1>"}, {"fake", ""},
		{"show q\t", "<" + hostile + ">"}, {"show \"q\t", "<" + hostile + ">"}, {"show 'q\t", "<" + hostile + ">"},
	}
	for shell, s := range typings() {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				need.Fact(t, false, "%s", shell)
			}
			function := filepath.Join(home, "typed."+shell)
			if err := os.WriteFile(function, []byte(as(shop.sbx, "completion", shell)), 0o644); err != nil {
				t.Fatal(err)
			}
			p := startTyping(t, home, s.start)
			defer p.end()
			p.line(t, strings.ReplaceAll(s.setup, "FUNCTION", function), "")
			for _, l := range lines {
				p.line(t, l.typed, l.want)
			}
			if os.Remove(filepath.Join(home, "project", "pwned")) == nil {
				t.Error("a name was run")
			}
		})
	}
}

// openQuestion waits for the question of the running session and returns what a person types of its id.
func openQuestion(t *testing.T, as func(...string) string) string {
	t.Helper()
	for end := time.Now().Add(dialogPatience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var all struct{ Questions []struct{ ID string } }
		if err := json.Unmarshal([]byte(as(shop.sbx, "watch", "--once", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		if len(all.Questions) > 0 {
			return all.Questions[0].ID[:8]
		}
	}
	t.Fatal("no question is open")
	return ""
}

func startTyping(t *testing.T, home string, args []string) *terminal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.SysProcAttr = filepath.Join(home, "project"), shop.attr()
	cmd.Env = append(shop.env(home, home), "HOSTILE="+hostile)
	p, err := openTerminal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.size(40, 250); err != nil {
		t.Fatal(err)
	}
	return p
}

// line types a line, and waits for what show is given and for the next prompt.
func (t *terminal) line(test *testing.T, typed, want string) {
	test.Helper()
	text, pattern := typed+"\r", regexp.QuoteMeta("GOT"+want)
	if want == "" { // it prints nothing
		text, pattern = typed+"; echo d''one\r", `done\r`
	}
	if _, err := t.master.WriteString(text); err != nil {
		test.Fatal(err)
	}
	if err := t.expect(pattern); err != nil {
		test.Fatalf("%q: want %s: %v\nheard: %q", typed, pattern, err, clip(t.everything()))
	}
}
