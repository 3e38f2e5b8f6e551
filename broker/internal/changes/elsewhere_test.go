//go:build linux

package changes

import (
	"os"
	"path/filepath"
	"testing"

	"sbx.example/sbx/broker/plan"
)

func TestElsewhere(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(rel string) string { return filepath.Join(top, rel) }
	for _, d := range []string{"project/sub", "shown", "other/lib", "other/over/sub", "behind", "seen"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("other", at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := Elsewhere(&plan.Plan{Mounts: []plan.Mount{
		{Kind: plan.Fuse, Target: at("project"), Source: at("project"), Access: plan.ReadWrite},
		{Kind: plan.Bind, Target: at("shown"), Source: at("shown"), Access: plan.ReadOnly},
		{Kind: plan.Overlay, Target: at("other/over"), Lower: []string{at("other/over")}, Upper: "/x"},
		{Kind: plan.Bind, Target: at("seen"), Source: at("behind"), Access: plan.ReadWrite},
	}})
	for rel, want := range map[string]bool{
		"shown": true, "other/lib": true, "project": false, "project/sub": false, "projects": false, "": false,
		"other": false, "other/over": false, "other/over/sub": false,
		"seen": false, "behind": false, "link/lib": false, "file": false, "none": false,
	} {
		if got := elsewhere(at(rel)); got != want {
			t.Errorf("%q: %v", rel, got)
		}
	}
}
