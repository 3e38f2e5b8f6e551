package guard

import (
	"slices"
	"strings"
	"testing"
)

// TestReferences: what a person's own settings make git run in the work tree is found, and what is data is not.
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config string
		want   []string
	}{
		{"[core]\nhooksPath = .githooks\n", []string{"/p/.githooks"}},
		{"[core]\nhooksPath = ~/hooks\n", []string{"/h/hooks"}},
		{"[include]\npath = ../.gitconfig\n", []string{"/p/.gitconfig"}},
		{"[includeIf \"gitdir:/p/\"]\npath = /p/x\n", []string{"/p/x"}},
		{"[core]\nfsmonitor = ./tools/watch --all\n", []string{"/p/tools/watch"}},
		{"[filter \"x\"]\nclean = tools/clean %f\nsmudge = \"sh tools/smudge\"\n", []string{"/p/tools/clean",
			"/p/tools/smudge"}},
		{"[diff \"x\"]\ntextconv = sh -e show.sh\n[core]\nhooksPath = ~ann/hooks\n", []string{"/p/show.sh", "/h/hooks"}},
		{"[alias]\nst = \"!f() { scripts/st; }; f\"\n", []string{"/p/scripts/st", "/p/f"}},
		{"[alias]\nx = !$(git rev-parse --show-toplevel)/x/y\n", []string{"/p/git", "/p/rev-parse", "/x/y", "/p/x/y"}},
		{"[credential \"https://h/\"]\nhelper = !bin/h\n", []string{"/p/bin/h"}},
		{"[branch \"m\"]\nmerge = refs/heads/m\n[remote \"o\"]\nurl = ../o/x\nfetch = +refs/heads/*:refs/remotes/o/*\n", nil},
		{"[blame]\nignoreRevsFile = .x/revs\n[core]\nexcludesFile = .x/ignore\n[commit]\ntemplate = .x/t\n", nil},
		{"[core]\nattributesFile = .x/attributes\n", []string{"/p/.x/attributes"}},
		{"[core]\npager = less -R\n", nil},
		{"[broken\n", nil},
	} {
		var got []string
		for _, r := range References([]byte(c.config), "/p/.git", "/p", "/h") {
			got = append(got, r.Path)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.config, got, c.want)
		}
	}
}

// TestReferencesLate: what names a file in a command counts where there is none yet, and other words do not.
func TestReferencesLate(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"tools/q": {"/p/tools/q"}, "!tools/q -v x": {"/p/tools/q"}, "/p/inc/clean.sh %f": {"/p/inc/clean.sh"},
		"sh /p/inc/c.sh": {"/p/inc/c.sh"}, "f() { sh ~/src/x; }; f": {"/h/src/x"}, "$HOME/x/y": {"/h/x/y"},
		"\"${HOME}/x\"": {"/h/x"}, "$PWD/q": {"/q", "/p/q"}, "$(git rev-parse --show-toplevel)/x/y": {"/x/y", "/p/x/y"},
		"env A=b tools/q": {"/p/tools/q"}, "q": nil, "sh q": nil, "less -R": nil, "ctest build/out/": nil,
		"log --format=%h/%s a/b...c/d": nil, "grep -I/x 'a/.*'": nil, "fetch o a/b:c/d": nil, "!cd build/out && make": nil,
		"make -C build/out": nil, "'/p/a b/c' %f": {"/p/a", "/p/b/c", "/p/a b/c"},
		`sh "$HOME/a b"/c`: {"/h/a", "/c", "/p/c", "/h/a b/c"},
		`~/a\ b/c`:         {"/p/b/c", "/h/a b/c"}, "/p/a b/gpg": {"/p/a", "/p/b/gpg", "/p/a b/gpg"}, `echo "a b" c`: nil,
	} {
		var got []string
		for _, r := range References([]byte("[alias]\n\tx = "+quoteValue(command)+"\n"), "/p/.git", "/p", "/h") {
			if r.Late {
				got = append(got, r.Path)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", command, got, want)
		}
	}
}

// quoteValue quotes a value for a configuration.
func quoteValue(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// TestInEnvironment: what the environment makes git run is found as what a configuration does, and words that are no
// places are not.
func TestInEnvironment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want []string
	}{
		{map[string]string{"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "Core.HooksPath", "GIT_CONFIG_VALUE_0": "hk",
			"GIT_CONFIG_KEY_1": "filter.X.clean", "GIT_CONFIG_VALUE_1": "sh c.sh"}, []string{"/p/hk", "/p/c.sh"}},
		{map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "Include.path", "GIT_CONFIG_VALUE_0": "~/x",
			"GIT_CONFIG_KEY_1": "core.hookspath", "GIT_CONFIG_VALUE_1": "beyond"}, []string{"/h/x"}},
		{map[string]string{"GIT_CONFIG_COUNT": "x", "GIT_CONFIG_KEY_0": "nothing"}, nil},
		{map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "nothing", "GIT_CONFIG_VALUE_0": "./x"}, nil},
		{map[string]string{"EDITOR": "code --wait", "PAGER": "less -R", "LESSOPEN": "|/usr/bin/lesspipe %s",
			"ENV": "production"}, []string{"/usr/bin/lesspipe", "/p/usr/bin/lesspipe"}},
		{map[string]string{"GIT_SSH_COMMAND": "./ssh.sh -v", "BASH_ENV": "env.sh", "ENV": "~/sh/env", "GIT_EXEC_PATH": "b"},
			[]string{"/p/ssh.sh", "/p/b", "/p/env.sh", "/h/sh/env"}},
		{map[string]string{"GIT_CONFIG_PARAMETERS": `'core.hooksPath'='hk' 'filter.X.clean'='it'\''s/c.sh' 'a.b'=`}, []string{
			"/p/hk", "/p/s/c.sh"}},
		{map[string]string{"GIT_CONFIG_PARAMETERS": "'Core.hooksPath=hk'\t'alias.x=!./x.sh' "}, []string{"/p/hk", "/p/x.sh"}},
		{map[string]string{"GIT_CONFIG_PARAMETERS": "core.hooksPath=hk"}, nil},
		{map[string]string{"GIT_CONFIG_PARAMETERS": "'core.hooksPath'='hk' 'core.fsmonitor'='./x"}, []string{"/p/hk"}},
		{map[string]string{"GIT_CONFIG_GLOBAL": "cfg", "GIT_CONFIG_SYSTEM": "~/cfg", "XDG_CONFIG_HOME": ".config"}, []string{
			"/p/.config/git/config", "/p/cfg", "/p/~/cfg"}},
		{map[string]string{"GIT_CONFIG_GLOBAL": "/h/cfg", "GIT_CONFIG_SYSTEM": ""}, []string{"/h/cfg"}},
	} {
		var got []string
		always := []string{"/etc/gitconfig", "/h/.config/git/config", "/h/.gitconfig"}
		for _, r := range InEnvironment(func(name string) string { return c.env[name] }, "/p", "/h") {
			got = append(got, r.Path)
		}
		if want := append(always, c.want...); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", c.env, got, want)
		}
	}
}
