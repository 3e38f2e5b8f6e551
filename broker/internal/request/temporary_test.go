package request

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/plan"
)

// TestOriginals: only a regular file that nobody runs, or one that is none yet, is replaced by a temporary name.
func TestOriginals(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, mode := range map[string]os.FileMode{"file": 0o600, "tool": 0o700, ".envrc": 0o600, ".env": 0o600} {
		if err := os.WriteFile(at(name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if os.Mkdir(at("dir"), 0o700) != nil || os.Symlink("file", at("link")) != nil ||
		os.Symlink("gone", at("lost")) != nil {
		t.Fatal("cannot make them")
	}
	for name, want := range map[string]bool{"file.tmp.1": true, "none.tmp.1": true, "file": false,
		"tool.tmp.1": false, "dir.tmp.1": false, "link.tmp.1": false, "lost.tmp.1": false,
		"envrc.tmp.1": true, ".envrc.tmp.1": false, ".env.tmp.1": false, ".env.local": false} {
		got := Originals(&planner.Input{}, at(name), false)
		got = slices.DeleteFunc(got, func(f string) bool { return f == at("envrc") && name[0] == '.' }) // that is none yet
		if len(got) > 0 != want {
			t.Errorf("%s is a temporary name of %q", name, got)
		}
	}
	if got := Originals(&planner.Input{Only: &planner.Only{}}, at("file.tmp.1"), false); got != nil {
		t.Errorf("with --only: %q", got)
	}
}

func TestWritableFiles(t *testing.T) {
	dir := t.TempDir()
	file, ruled, shown := filepath.Join(dir, "file"), filepath.Join(dir, "ruled"), filepath.Join(dir, "shown")
	copied := filepath.Join(dir, "copied") // something else is shown there
	for _, p := range []string{file, ruled, shown, copied} {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := &planner.Input{Grants: []planner.Grant{{Path: file, Why: "--rw"}, {Path: ruled, Why: "/p.toml:1", Ruled: true}}}
	bind := func(p, why string, a plan.Access) plan.Mount {
		return plan.Mount{Kind: plan.Bind, Target: p, Source: p, Access: a, Why: why}
	}
	is := WritableFiles(in, &plan.Plan{Mounts: []plan.Mount{bind(file, "--rw", plan.ReadWrite),
		bind(dir, "--rw", plan.ReadWrite),
		bind(ruled, "/p.toml:1", plan.ReadWrite), bind(shown, "--ro", plan.ReadOnly),
		{Kind: plan.Bind, Target: copied, Source: file, Access: plan.ReadWrite, Why: "--rw"}}})
	for p, want := range map[string]bool{file: true, dir: false, ruled: false, shown: false, copied: false,
		file + ".tmp.1": false} {
		if is(p) != want {
			t.Errorf("%s: %v", p, !want)
		}
	}
}
