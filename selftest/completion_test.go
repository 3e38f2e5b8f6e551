//go:build linux

package selftest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// typedLine is a command line in the making, and what its shell must offer: all of it where exact, else among others.
type typedLine struct {
	words []string // the last as far as it is typed
	want  []string
	exact bool
}

func typedLines() []typedLine {
	return []typedLine{
		{[]string{"sbx", "sel"}, []string{"selftest"}, true},
		{[]string{"sbx", "run", "--mode", ""}, []string{"dynamic", "static"}, true},
		{[]string{"sbx", "run", "--ti"}, []string{"--timeout", "--time-offset"}, true},
		{[]string{"sbx", "run", "--profile", ""}, []string{"moderate", "permissive", "strict", "odd"}, true},
		{[]string{"sbx", "run", "-p", "str"}, []string{"strict"}, true},
		{[]string{"sbx", "run", "--net", "pas"}, []string{"pasta"}, true},
		{[]string{"sbx", "run", "--ro", "da"}, []string{"data file"}, false},
		{[]string{"sbx", "run", "--", "tru"}, []string{"true"}, false},
		{[]string{"sbx", "run", "--static", "cat", "da"}, []string{"data file"}, false},
		{[]string{"sbx", "policy", ""}, []string{"add", "check", "diff", "export", "import", "remove", "replay",
			"secrets", "show", "test", "trust"}, true},
		{[]string{"sbx", "policy", "add", "d"}, []string{"deny"}, true},
		{[]string{"sbx", "policy", "add", "--scope", ""}, []string{"org", "project", "user"}, true},
		{[]string{"sbx", "audit", "pr"}, []string{"prune"}, false},
		{[]string{"sbx", "audit", "prune", "--old"}, []string{"--older-than"}, true},
		{[]string{"sbx", "attach", ""}, []string{"running1"}, true},
		{[]string{"sbx", "exec", "ru"}, []string{"running1"}, true},
		{[]string{"sbx", "exec", "-t", "running1", "tru"}, []string{"true"}, false},
		{[]string{"sbx", "apply", ""}, []string{"kept1"}, true},
		{[]string{"sbx", "apply", "--allow", ""}, []string{"guarded", "links", "secrets"}, true},
		{[]string{"sbx", "completion", ""}, []string{"bash", "fish", "zsh"}, true},
		{[]string{"sbx", "man", "sbx-"}, []string{"sbx-run.1"}, true},
		{[]string{"sbx", "nonsense", ""}, nil, true},
	}
}

// TestCompletion has every shell complete lines by the function that sbx prints for it, with sessions that run and
// that are kept.
func TestCompletion(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	home := filepath.Join(shop.dir, "completion")
	project := filepath.Join(home, "project")
	if err := os.MkdirAll(filepath.Join(project, "data file"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, ".config", "sbx"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := "[profiles.odd]\nextends = \"strict\"\n"
	if err := os.WriteFile(filepath.Join(home, ".config", "sbx", "config.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(home); err != nil {
		t.Fatal(err)
	}
	as := func(args ...string) string { return completionUser(t, home, args...) }
	as(shop.sbx, "run", "-q", "--detach", "--name", "running1")
	defer as(shop.sbx, "kill", "running1")
	as(shop.sbx, "run", "-q", "--name", "kept1", "--ephemeral", "--keep", "--", "sh", "-c", "echo x >made")
	setup := filepath.Join(shop.source, "selftest", "testdata", "completion.zsh")
	if text, err := os.ReadFile(setup); err != nil {
		t.Fatal(err)
		// the source may be nobody else's to read
	} else if setup = filepath.Join(home, "setup.zsh"); os.WriteFile(setup, text, 0o644) != nil {
		t.Fatal("writing " + setup)
	}
	for _, s := range []struct {
		shell    string
		complete func(function string) [][]string // for each of the lines
	}{
		{"bash", each(func(function string, words []string) []string {
			script := `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sbx; printf '%s\n' "${COMPREPLY[@]}"`
			return strings.Split(as(append([]string{"bash", "--norc", "-c", script, "bash", function}, words...)...), "\n")
		})},
		{"fish", each(func(function string, words []string) []string {
			out := as("fish", "--no-config", "-c", `source $argv[1]; complete -C "$argv[2]"`, function, strings.Join(words, " "))
			var list []string
			for line := range strings.SplitSeq(out, "\n") {
				word, _, _ := strings.Cut(line, "\t")
				list = append(list, word)
			}
			return list
		})},
		{"zsh", func(function string) [][]string {
			args := []string{"zsh", "-f", "-c", zshCompletes, "zsh", function, setup}
			for _, l := range typedLines() {
				args = append(args, strings.Join(l.words, " "))
			}
			var out [][]string
			for part := range strings.SplitSeq(as(args...), "NEXT\n") {
				out = append(out, strings.Split(part, "\n"))
			}
			return out
		}},
	} {
		t.Run(s.shell, func(t *testing.T) {
			if _, err := exec.LookPath(s.shell); err != nil {
				need.Fact(t, false, "%s", s.shell)
			}
			function := filepath.Join(home, "completion."+s.shell)
			if err := os.WriteFile(function, []byte(as(shop.sbx, "completion", s.shell)), 0o644); err != nil {
				t.Fatal(err)
			}
			lines, offered := typedLines(), s.complete(function)
			if len(offered) < len(lines) {
				t.Fatalf("%d lines were completed: %q", len(offered), offered)
			}
			for i, l := range lines {
				l.check(t, offered[i])
			}
		})
	}
}

// each completes line by line.
func each(one func(function string, words []string) []string) func(string) [][]string {
	return func(function string) (out [][]string) {
		for _, l := range typedLines() {
			out = append(out, one(function, l.words))
		}
		return out
	}
}

func (l *typedLine) check(t *testing.T, offered []string) {
	t.Helper()
	var got []string
	for _, w := range offered {
		if w = strings.TrimSuffix(strings.ReplaceAll(strings.TrimSpace(w), `\`, ""), "/"); w != "" {
			got = append(got, w)
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	if l.exact && !slices.Equal(got, slices.Sorted(slices.Values(l.want))) {
		t.Errorf("%q: offered %q, want %q", l.words, got, l.want)
	}
	for _, w := range l.want {
		if !slices.Contains(got, w) {
			t.Errorf("%q: %q is not offered: %.200q", l.words, w, got)
		}
	}
}

// completionUser runs a command as the ordinary user in the project of home and returns what it prints.
func completionUser(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command("/usr/bin/env", args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = filepath.Join(home, "project"), shop.attr(), shop.env(home, home)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && strings.HasPrefix(filepath.Base(args[0]), "sbx") || cmd.ProcessState == nil {
		t.Fatalf("%q: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// zshCompletes types lines into an interactive zsh that has read testdata/completion.zsh, and prints what its
// completion adds.
const zshCompletes = `
zmodload zsh/zpty
export COMPLETION=$1
zpty z zsh -f -i
zpty -w z "source $2"
zpty -r z text '*READY*'
for line in "${@[3,-1]}"; do
	zpty -w -n z $'\x15'"$line"$'\x18'
	zpty -r z text '*END*'
	print -r -- "$text" | tr -d '\r' | sed -n 's/^.*WORD //p'
	print -r -- NEXT
done
zpty -d z
`
