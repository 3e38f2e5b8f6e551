//go:build linux

package child

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
)

// layered is a plan that shows a directory with the files a and b through an overlay at place, which hides a and sub/c,
// and has f on top. The operations made come before it.
func layered(t *testing.T, place string, made ...plan.Mount) *plan.Plan {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "f", "sub/c", "sub/d"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("host's "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := plans.Smallest("/usr/bin/sh", "-c",
		`cd $0 && ls -A . sub && cat f && (: >new) 2>/dev/null && echo WRITABLE; grep -c " $0 tmpfs" /proc/mounts; grep -c " $0 overlay" /proc/mounts`, place)
	last := len(p.Mounts) - 1
	made = append(made, plan.Mount{Kind: plan.Overlay, Target: place, Lower: []string{dir}, Hide: []string{"a", "sub/c"},
		Files: []plan.Text{{Name: "f", Text: "mine\n"}}, Access: plan.ReadOnly})
	p.Mounts = append(append(p.Mounts[:last:last], made...), p.Mounts[last])
	return p
}

// What hides names stands in the skeleton's own directory where that is empty and in a tmpfs elsewhere, and what was
// there does not shine through.
func TestLayersOnTop(t *testing.T) {
	dir := func(p string) plan.Mount { return plan.Mount{Kind: plan.Dir, Target: p, Mode: 0o755} }
	for _, x := range []struct {
		name  string
		place string
		made  []plan.Mount
		tmpfs string // how many there are in its place
	}{
		{"skeleton", "/o", []plan.Mount{dir("/o")}, "0"},
		{"deeper", "/o/p", []plan.Mount{dir("/o"), dir("/o/p")}, "0"},
		{"beside others", "/o", []plan.Mount{dir("/o"), dir("/o2"), {Kind: plan.File, Target: "/o2/x", Mode: 0o644}}, "0"},
		{"with an entry", "/o", []plan.Mount{dir("/o"), {Kind: plan.File, Target: "/o/x", Mode: 0o644}}, "1"},
		{"of another mode", "/o", []plan.Mount{{Kind: plan.Dir, Target: "/o", Mode: 0o711}}, "1"},
		{"a mount", "/o", []plan.Mount{dir("/o"), {Kind: plan.Tmpfs, Target: "/o", Size: 1 << 16, Inodes: 10, Mode: 0o755}},
			"2"},
		{"in a mount", "/o/p", []plan.Mount{dir("/o"), {Kind: plan.Tmpfs, Target: "/o", Size: 1 << 16, Inodes: 10,
			Mode: 0o755}, dir("/o/p")}, "1"},
		{"of the host's", "/usr/share", nil, "1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			out, code := run(t, layered(t, x.place, x.made...))
			want := ".:\nb\nf\nsub\n\nsub:\nd\nmine\n" + x.tmpfs + "\n1\n"
			if out != want {
				t.Errorf("exit %d, output\n%s\nwant\n%s", code, out, want)
			}
		})
	}
}

// A file on top never replaces what is there already, and is no way to a place elsewhere.
func TestFileOnTopIsNew(t *testing.T) {
	p := layered(t, "/o", plan.Mount{Kind: plan.Dir, Target: "/o", Mode: 0o755})
	m := &p.Mounts[len(p.Mounts)-2]
	m.Hide = append(m.Hide, "f")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err := Start(p, stage.Stdio{-1, 1, 2}, Hooks{})
	if f, ok := err.(*steps.Fault); !ok || f.Errno != unix.EEXIST || f.Object != "/o" ||
		!strings.Contains(f.Step, "overlay") {
		t.Fatalf("got %#v, want EEXIST", err)
	}
}
