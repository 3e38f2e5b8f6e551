//go:build linux

package gate

import (
	"path"
	"syscall"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

func testView() *View {
	p := &plan.Plan{Mounts: []plan.Mount{
		{Kind: plan.Tmpfs, Target: "/", Why: "skeleton"},
		{Kind: plan.Dir, Target: "/usr"}, {Kind: plan.Bind, Target: "/usr", Source: "/usr"},
		{Kind: plan.Symlink, Target: "/bin", Source: "usr/bin"},
		{Kind: plan.Dir, Target: "/etc"}, {Kind: plan.Overlay, Target: "/etc", Hide: []string{"shadow"}},
		{Kind: plan.Dir, Target: "/home"}, {Kind: plan.Dir, Target: "/home/u"},
		{Kind: plan.Dir, Target: "/home/u/project"}, {Kind: plan.Fuse, Target: "/home/u/project", Hide: []string{"sub/.env"}},
		{Kind: plan.Dir, Target: "/tmp"}, {Kind: plan.Tmpfs, Target: "/tmp"},
		{Kind: plan.Dir, Target: "/tmp/x"}, {Kind: plan.Tmpfs, Target: "/tmp/x", Why: "skeleton"},
		{Kind: plan.Dir, Target: "/hid/shown"}, {Kind: plan.Bind, Target: "/hid/shown"},
		{Kind: plan.Remount, Target: "/"},
	}}
	return NewView(p, []string{"/home/u/.ssh", "/hid", "/srv/a/key"}, []host.Inode{{Dev: 1, Ino: 2}},
		func(p string) bool { return path.Base(p) == ".env" })
}

func TestView(t *testing.T) {
	v := testView()
	const visible, gated, denied = "visible", "gated", "denied"
	for path, want := range map[string]string{
		"/": gated, "/usr": visible, "/usr/bin/x": visible, "/bin": visible, "/etc": visible, "/etc/passwd": visible,
		"/etc/shadow": denied, "/etc/shadow/x": denied,
		"/home": gated, "/home/u": gated, "/home/u/f": gated, "/home/u/project": visible, "/home/u/project/f": visible,
		"/home/u/project2": gated, "/home/u/project/sub/.env": denied,
		"/home/u/.ssh": denied, "/home/u/.ssh/id": denied, "/home/u/.sshx": gated, "/tmp/f": visible, "/tmp/x": gated,
		"/tmp/x/f": gated,
		"/hid":     denied, "/hid/f": denied, "/hid/shown": visible, "/hid/shown/f": visible, "/srv/a/b": gated,
	} {
		got := "nothing"
		no, errno := v.Denied(path)
		switch {
		case no && (v.Gated(path) || v.Visible(path)), v.Gated(path) && v.Visible(path):
			got = "two things at once"
		case no && errno == syscall.ENOENT:
			got = denied
		case v.Gated(path):
			got = gated
		case v.Visible(path):
			got = visible
		}
		if got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	for path, want := range map[string]bool{"/home": false, "/home/u": false, "/home/u/a": true, "/srv": false,
		"/srv/a": false, "/srv/a/b": true, "/srv/a/key": false, "/opt": true} {
		if v.Whole(path) != want {
			t.Errorf("whole %s: %v", path, !want)
		}
	}
	if !v.Secret(host.Inode{Dev: 1, Ino: 2}) || v.Secret(host.Inode{Dev: 1, Ino: 3}) {
		t.Error("identities of secret files")
	}
}
