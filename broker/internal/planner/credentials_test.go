package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const withToken = " : [remote \"o\"]\n\turl = https://u:pw@h.example/x\n"

// masks says whether a configuration is shown without its credential.
func masks(in *Input, p string) bool {
	return slices.ContainsFunc(in.Masked, func(m Masked) bool { return m.Path == p })
}

// leavesOut says whether a place does not exist inside.
func leavesOut(in *Input, p string) bool { return slices.Contains(in.Unread, p) }

// TestCredentialAmongManySubmodules: programs inside can make directories beside a submodule's, more than the next
// session looks at. None of them exists then. The control has fewer.
func TestCredentialAmongManySubmodules(t *testing.T) {
	t.Parallel()
	const git = "/home/u/project/.git"
	made := func(n int, more ...string) []string {
		files := append(more, git+"/HEAD", git+"/config : [core]\n", git+"/modules/zz/HEAD",
			git+"/modules/zz/config"+withToken)
		for i := range n {
			files = append(files, fmt.Sprintf("%s/modules/a%d/HEAD", git, i))
		}
		return files
	}
	for _, mode := range []Mode{Read, Write, Overlay} {
		_, _, in, err := planned(machine(made(10)...), mode, 1000)
		if err != nil || !masks(in, git+"/modules/zz/config") || len(in.Unread) > 0 {
			t.Errorf("mode %v, few: %v, masked %v, left out %v", mode, err, in.Masked, in.Unread)
		}
		_, losses, in, err := planned(machine(made(maxSubmodules)...), mode, 1000)
		if err != nil || !leavesOut(in, git+"/modules") || !slices.ContainsFunc(losses, func(l Loss) bool {
			return l.What == git+"/modules" && strings.Contains(l.Why, "does not exist inside")
		}) {
			t.Errorf("mode %v, many: %v, left out %v, losses %v", mode, err, in.Unread, losses)
		}
	}
	deep := git + "/modules/a" + strings.Repeat("/b", maxModules)
	if _, _, in, err := planned(machine(made(0, deep+"/HEAD", deep+"/config"+withToken)...), Write, 1000); err != nil ||
		!leavesOut(in, git+"/modules") {
		t.Errorf("too deep: %v, left out %v", err, in.Unread)
	}
}

// TestCredentialAmongManyOthers: programs inside can make repositories with credentials of their own, so that the next
// session has no mask left for a true one. It does not exist then. The control has fewer.
func TestCredentialAmongManyOthers(t *testing.T) {
	t.Parallel()
	const p = "/home/u/project"
	for n, left := range map[int]bool{maxMasked - 1: false, maxMasked: true} {
		files := []string{p + "/z/.git/HEAD", p + "/z/.git/config" + withToken, p + "/x/copy = " + p + "/z/.git/config"}
		for i := range n {
			files = append(files, fmt.Sprintf("%s/a%d/.git/HEAD", p, i), fmt.Sprintf("%s/a%d/.git/config%s", p, i, withToken))
		}
		for _, mode := range []Mode{Read, Write, Overlay} {
			_, losses, in, err := planned(machine(files...), mode, 1000)
			if at := p + "/z/.git/config"; err != nil || masks(in, at) == left || leavesOut(in, at) != left {
				t.Errorf("%d others, mode %v: %v, masked %t, left out %v", n, mode, err, masks(in, at), in.Unread)
			}
			if !slices.ContainsFunc(losses, func(l Loss) bool {
				return l.What == p+"/x/copy" && strings.Contains(l.Why, "another name (hard link) of a secret")
			}) {
				t.Errorf("%d others, mode %v: another name is shown: %v", n, mode, losses)
			}
		}
	}
}

// TestCredentialAmongManyIncluded: no number of files that one repository includes keeps another's own settings from
// being looked at. That not all included ones were is a loss.
func TestCredentialAmongManyIncluded(t *testing.T) {
	t.Parallel()
	const p = "/home/u/project"
	for n, lost := range map[int]bool{5: false, maxIncluded + 1: true} {
		text := "[include]\n"
		for i := range n {
			text += fmt.Sprintf("\tpath = %d\n", i)
		}
		_, losses, in, err := planned(machine(p+"/a/.git/HEAD", p+"/a/.git/config : "+text, p+"/z/.git/HEAD",
			p+"/z/.git/config"+withToken), Overlay, 1000)
		if err != nil || !masks(in, p+"/z/.git/config") || lost != slices.ContainsFunc(losses, func(l Loss) bool {
			return l.What == "what settings of repositories include" && strings.Contains(l.Why, "too much to be looked at")
		}) {
			t.Errorf("%d included: %v, masked %v, losses %v", n, err, in.Masked, losses)
		}
	}
}

// TestCredentialAmongManyDirectories: programs inside can make directories beside a repository, too. In a tree that
// they write it is found among more of them than in one that is only read, as secrets are.
func TestCredentialAmongManyDirectories(t *testing.T) {
	t.Parallel()
	const p = "/home/u/project"
	files := []string{p + "/z/.git/HEAD", p + "/z/.git/config" + withToken}
	for i := range 2 * searchBudget / listCost {
		files = append(files, fmt.Sprintf("%s/a%d/", p, i))
	}
	for mode, found := range map[Mode]bool{Read: false, Write: true, Overlay: true} {
		_, losses, in, err := planned(machine(files...), mode, 1000)
		if err != nil || masks(in, p+"/z/.git/config") != found || found == slices.ContainsFunc(losses, func(l Loss) bool {
			return strings.Contains(l.Why, "the tree is too large to be searched")
		}) {
			t.Errorf("mode %v: %v, masked %v, losses %v", mode, err, in.Masked, losses)
		}
	}
}
