package guard

import (
	"slices"
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
