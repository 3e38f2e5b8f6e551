package project

import (
	"os"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

func TestDiscover(t *testing.T) {
	root := t.TempDir()
	home, uid := root+"/home", os.Geteuid()
	for _, d := range []string{"/home/p/.git", "/home/p/a/b", "/home/q/.sbx", "/home/q/sub", "/home/plain", "/up/.git",
		"/up/x"} {
		os.MkdirAll(root+d, 0o755)
	}
	os.MkdirAll(home+"/.git", 0o755)
	os.MkdirAll(home+"/wt/d", 0o755)
	os.WriteFile(home+"/wt/.git", nil, 0o644)
	os.MkdirAll(home+"/ln/d", 0o755)
	os.Symlink("/etc", home+"/ln/.git")
	for cwd, want := range map[string]string{"/home/p/a/b": "/home/p", "/home/p": "/home/p", "/home/q/sub": "/home/q",
		"/home/plain": "/home/plain", "/home": "/home", "": "", "/home/wt/d": "/home/wt", "/home/ln/d": "/home/ln/d"} {
		p, err := Discover(root+cwd, home, uid)
		if err != nil || p.Root != root+want {
			t.Errorf("from %q: %+v %v, want %s", cwd, p, err, want)
		}
		if risky := cwd == "/home" || cwd == ""; risky != (p.Risky != "") {
			t.Errorf("from %q: risky %q", cwd, p.Risky)
		}
	}
	if p, _ := Discover("/", home, uid); p.Root != "/" || p.Risky == "" {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{"", "x", "/a/../b", "/a/"} {
		if _, err := Discover(bad, home, uid); err == nil || !strings.Contains(err.Error(), "clean absolute path") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	need.Root(t, "to change owners")
	os.Chown(root+"/home/p", 1000, 0)
	if p, _ := Discover(home+"/p/a/b", home, uid); p.Root != home+"/p/a/b" {
		t.Errorf("went up into a foreign directory: %+v", p)
	}
	if p, _ := Discover(home+"/p", home, uid); p.Root != home+"/p" || !strings.Contains(p.Risky, "uid 1000") {
		t.Errorf("%+v", p)
	}
}
