package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// writeFile makes a file, and the directories that it lies in.
func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReferBounds: repositories are looked for within a bound, and what it leaves out is a loss.
func TestReferBounds(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	put := func(name, text string) { writeFile(t, name, text) }
	repository := func(dir string) {
		put(dir+"/.git/HEAD", "ref: refs/heads/m\n")
		put(dir+"/.git/config", "[core]\n\thooksPath = ../h\n")
	}
	refer := func() *Input {
		in := &Input{FS: host.NewCache(nil), Grants: []Grant{{Path: top, Mode: Write}}}
		in.Refer(nil)
		return in
	}
	has := func(in *Input, p string) bool {
		return slices.ContainsFunc(in.Referred, func(r guard.Referred) bool { return r.Path == p })
	}
	for _, dir := range []string{"/a/r", "/a/b/c/d/e/f/g/h/r", "/node_modules/x/r"} {
		repository(top + dir)
	}
	put(top+"/config", "[core]\n\thooksPath = none\n") // no repository's
	in := refer()
	if !has(in, top+"/a/h") || !has(in, top+"/a/b/c/d/e/f/g/h/h") || has(in, top+"/node_modules/x/h") ||
		has(in, top+"/none") {
		t.Errorf("refers to %v", in.Referred)
	}
	if len(in.Losses) != 0 {
		t.Errorf("losses %v", in.Losses)
	}
	for i := range searchBudget / listCost {
		put(fmt.Sprintf("%s/many/%d/f", top, i), "")
	}
	if in = refer(); len(in.Losses) != 1 || !has(in, top+"/a/h") {
		t.Errorf("beyond the bound: refers to %v, losses %v", in.Referred, in.Losses)
	}
}

// TestReferToEachOnce: configurations that include each other, or themselves, take no more of the bound than their
// number. The control includes as many others as exceed it.
func TestReferToEachOnce(t *testing.T) {
	t.Parallel()
	for files, want := range map[int]int{2: 0, maxConfigs + 1: 1} {
		top := t.TempDir()
		put := func(name, text string) { writeFile(t, filepath.Join(top, name), text) }
		put("a/.git/HEAD", "x")
		put("a/.git/config", "[include]\n\tpath = config\n\tpath = 0\n")
		for i := range files {
			put(fmt.Sprintf("a/.git/%d", i), fmt.Sprintf("[include]\n\tpath = %d\n", (i+1)%files))
		}
		put("b/.git/HEAD", "x")
		put("b/.git/config", "[core]\n\thooksPath = ../h\n")
		in := &Input{FS: host.NewCache(nil), Grants: []Grant{{Path: top, Mode: Write}}}
		if err := in.Refer(nil); err != nil {
			t.Fatal(err)
		}
		has := slices.ContainsFunc(in.Referred, func(r guard.Referred) bool { return r.Path == top+"/h" })
		for _, l := range in.Losses {
			if !strings.Contains(l.Why, "more configurations than are read") {
				t.Errorf("%d files: %s", files, l.Why)
			}
		}
		if len(in.Losses) != want || has != (want == 0) {
			t.Errorf("%d files: the other repository's hooks %t, losses %v", files, has, in.Losses)
		}
	}
}

// TestReferInEachRepository: relative places of settings for all repositories are meant in each of them, and so is a
// file of such settings whose own place is relative.
func TestReferInEachRepository(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for name, text := range map[string]string{"sub/.git/HEAD": "x", "cfg": "[core]\n\tfsmonitor = ./first\n",
		"sub/cfg": "[core]\n\tfsmonitor = ./second\n", "plain/cfg": "[core]\n\tfsmonitor = ./third\n"} {
		writeFile(t, filepath.Join(top, name), text)
	}
	in := &Input{FS: host.NewCache(nil), Grants: []Grant{{Path: top, Mode: Write}}}
	if err := in.Refer([]string{"GIT_CONFIG_GLOBAL=cfg", "GIT_CONFIG_PARAMETERS='core.hooksPath'='hk'"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"cfg": true, "first": true, "hk": true, "sub/cfg": true, "sub/second": true,
		"sub/hk": true, "sub/first": false, "plain/cfg": false, "plain/third": false, "plain/hk": false} {
		got := slices.ContainsFunc(in.Referred, func(r guard.Referred) bool { return r.Path == top+"/"+name })
		if got != want {
			t.Errorf("%s is guarded: %t, want %t", name, got, want)
		}
	}
}

// TestWorktreesShareSubmodules: each worktree has the submodules of its repository, which are looked at once.
func TestWorktreesShareSubmodules(t *testing.T) {
	top := t.TempDir()
	git := top + "/.git"
	for i := range 20 {
		own := fmt.Sprintf("%s/worktrees/%d", git, i)
		for j := range 10 {
			writeFile(t, fmt.Sprintf("%s/modules/external/%d/HEAD", own, j), "ref: refs/heads/main\n")
		}
		writeFile(t, own+"/HEAD", "ref: refs/heads/main\n")
		writeFile(t, own+"/commondir", "../..\n")
		writeFile(t, fmt.Sprintf("%s/trees/%d/.git", top, i), "gitdir: "+own+"\n")
	}
	writeFile(t, git+"/HEAD", "ref: refs/heads/main\n")
	writeFile(t, git+"/gitdir/x", "") // git reads it of a worktree alone
	in := &Input{FS: host.NewCache(nil), Grants: []Grant{{Path: top, Mode: Write}}}
	if err := in.Refer(nil); err != nil || len(in.Unread) > 0 {
		t.Errorf("%v, left out: %q", err, in.Unread)
	}
}

// TestLinksToWhatToolsMake: a link in a guarded directory guards what it leads to, but not where packages are, which a
// worktree in there has from the project.
func TestLinksToWhatToolsMake(t *testing.T) {
	top := t.TempDir()
	for _, link := range []string{"node_modules", "target", "setup"} {
		writeFile(t, top+"/"+link+"/x", "")
		if err := os.MkdirAll(top+"/.claude/worktrees/w", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../../../"+link, top+"/.claude/worktrees/w/"+link); err != nil {
			t.Fatal(err)
		}
	}
	in := &Input{FS: host.NewCache(nil), Grants: []Grant{{Path: top, Mode: Write}}}
	if err := in.Refer(nil); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]bool{"node_modules": false, "target": false, "setup": true} {
		got := slices.ContainsFunc(in.Referred, func(r guard.Referred) bool { return r.Path == top+"/"+link })
		if got != want {
			t.Errorf("%s is guarded: %t, want %t", link, got, want)
		}
	}
}
