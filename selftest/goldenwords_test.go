//go:build linux

package selftest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goldenHelp are the commands whose help is compared.
func goldenHelp() []string {
	var list []string
	for _, c := range []string{"", "run", "exec", "attach", "ps", "kill", "freeze", "thaw", "policy", "policy show",
		"policy check", "policy test", "policy add",
		"policy remove", "policy import", "policy export", "policy diff", "policy replay", "policy trust",
		"secret", "secret allow", "why", "audit",
		"audit verify", "audit prune", "watch",
		"approve", "deny", "config", "config show", "ls", "stats", "top", "diff", "apply", "discard", "selftest", "doctor",
		"completion", "help", "man", "version"} {
		list = append(list, strings.TrimSpace(c+" --help"))
	}
	return list
}

// goldenMistakes are wrong command lines, and right ones that say little.
func goldenMistakes() []string {
	return strings.Split(strings.TrimSpace(`
nonsense
version
version extra
run --bogus
run --bogus --json
run --allow-net -- true
run -p 8080:80 -- true
run -v /a:/b -- true
run --memory -- ls
shell
help nosuch
list --bogus
run --timeout
run --timeout=soon -- true
run --pids 0 -- true
run --quiet=1 -- true
run --env = -- true
run --ro= -- true
run --mode= -- true
run --name .. -- true
run --name= -- true
run --backend seatbelt -- true
run --backend none -- true
run --kill-if nothing -- true
run --nix=no -- true
run --containers=mine -- true
run --ssh-agent= -- true
run --dbus=... -- true
run --allow-host= -- true
run --only= -- true
exec
exec --bogus
exec --env
exec --env =x s -- true
exec --workdir sub s -- true
exec --max-output x s -- true
exec nosuch
exec no/such -- true
exec nosuch -- true
attach
attach nosuch
attach a b
ps
ps --bogus
ps nosuch
kill
kill --signal NOPE nosuch
kill --pid 1 nosuch
kill --pid
kill --bogus
kill nosuch
freeze
freeze nosuch
thaw --bogus
policy
policy shwo
policy show extra
policy check --bogus
policy check nosuch.toml
policy test
policy test --access any x
policy add
policy add allow
policy add maybe x
policy add --for never allow ~/x
policy remove
policy import
policy import other x
policy export --format xml
policy export extra
policy diff
policy replay
policy trust extra
secret
secret shwo
secret allow
secret allow --until never x
secret allow --session nosuch --for cat x
policy show --workdir
policy show
why
why --access any x
why a b
audit --bogus
audit a b
audit nosuch
audit no..such
audit
audit --decision maybe
audit verify nosuch
audit verify
audit prune
audit prune --older-than 3
audit prune --older-than 90d
watch --bogus
watch --json
watch
watch --once
watch --once --json
approve
approve --scope all x
approve --for x y
approve abcd
deny
deny --revoke ~/x
config
config show extra
config shows
ls --bogus
ls
ls --all --json
stats --bogus
stats
stats --json
stats --prometheus
stats nosuch
top --bogus
top --once
top --once --json
top extra
diff
diff --bogus
diff nosuch
apply
apply --bogus
apply nosuch
discard
discard --all x
discard nosuch
selftest --bogus
selftest --only
selftest --only nosuch
doctor --bogus
completion
completion tcsh
man
man nothing
`), "\n")
}

// TestGoldenWords compares what sbx says about itself and about mistakes with what it said.
func TestGoldenWords(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	home := filepath.Join(shop.dir, "words")
	if err := os.MkdirAll(filepath.Join(home, "project"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(home); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string][]string{"help.txt": goldenHelp(), "mistakes.txt": goldenMistakes(),
		"man.txt": {"man sbx.1", "man sbx-run.1", "man sbx.toml.5"}} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, l := range lines {
				fmt.Fprintf(&b, "$ sbx %s\n%s\n", l, goldenSays(t, home, strings.Fields(l)))
			}
			compareGolden(t, name, b.String())
		})
	}
}

// goldenSays is what a command says, and its status where that is not 0.
func goldenSays(t *testing.T, home string, args []string) string {
	t.Helper()
	for i, a := range args {
		if rest, ok := strings.CutPrefix(a, "~"); ok {
			args[i] = home + rest
		}
	}
	cmd := exec.Command(shop.sbx, args...)
	cmd.Dir, cmd.SysProcAttr = filepath.Join(home, "project"), shop.attr()
	cmd.Env = shop.env(home, home)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(out), home, "$HOME")
	if n := cmd.ProcessState.ExitCode(); n != 0 {
		text += fmt.Sprintf("status %d\n", n)
	}
	return text
}
