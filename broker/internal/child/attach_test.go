//go:build linux

package child

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// TestTakeTrees: the broker writes through a tree of the host's only where that is the directory that was planned.
func TestTakeTrees(t *testing.T) {
	top := t.TempDir()
	tree, other, link := filepath.Join(top, "tree"), filepath.Join(top, "other"), filepath.Join(top, "link")
	for _, d := range []string{tree, other} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(tree, link); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(tree, &st); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]bool{tree: true, other: false, link: false, filepath.Join(top, "none"): false} {
		p := &plan.Plan{Mounts: []plan.Mount{{Kind: plan.Judged, Target: at, Access: plan.ReadOnly, Dev: st.Dev,
			Ino: st.Ino}}}
		taken := 0
		err := takeTrees(p, Hooks{Tree: func(_ *plan.Mount, root *os.File) { taken++; root.Close() }})
		if (err == nil) != want || (taken == 1) != want {
			t.Errorf("%s: %d taken, %v", at, taken, err)
		}
		p.Namespaces.User = true // there process 1 hands them over
		if err = takeTrees(p, Hooks{}); err != nil {
			t.Errorf("with a user namespace: %v", err)
		}
	}
}
