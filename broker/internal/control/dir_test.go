//go:build linux

package control

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRoot(t *testing.T) {
	top := t.TempDir()
	mk := func(name string, mode os.FileMode) string {
		p := filepath.Join(top, name)
		if err := os.Mkdir(p, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good, open := mk("good", 0o700), mk("open", 0o777)
	planted := mk("planted", 0o700)
	if err := os.Mkdir(filepath.Join(planted, "sbx"), 0o755); err != nil {
		t.Fatal(err)
	}
	linked := mk("linked", 0o700)
	if err := os.Symlink(good, filepath.Join(linked, "sbx")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := mk("foreign", 0o700)
	if os.Geteuid() == 0 {
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(top, "state")
	for _, c := range []struct{ run, state, home, want, err string }{
		{good, "", "", good + "/sbx", ""},
		{good + "/", "", "", good + "/sbx", ""},
		{"", state, "", state + "/sbx/run", ""},
		{"", "", top, top + "/.local/state/sbx/run", ""},
		{filepath.Join(top, "none"), state, "", state + "/sbx/run", ""},
		{open, state, "", "", "mode 0777"},
		{link, state, "", "", "symbolic link"},
		{link + "/.", state, "", "", "symbolic link"},
		{file, state, "", "", "no directory"},
		{"relative", state, "", "", "absolute"},
		{planted, state, "", "", "mode 0755"},
		{linked, state, "", "", "symbolic link"},
		{"", "", "", "", "set one of them"},
		{foreign, state, "", state + "/sbx/run", ""},
	} {
		if c.run == foreign && os.Geteuid() != 0 {
			continue
		}
		got, err := Root(c.run, c.state, c.home)
		if c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

func TestSocketIsPrivateAndSingle(t *testing.T) {
	b := newBench(t, Options{})
	var st unix.Stat_t
	if err := unix.Lstat(b.sock(), &st); err != nil || st.Mode&0o777 != 0o600 {
		t.Errorf("mode %o, %v", st.Mode, err)
	}
	if err := unix.Lstat(filepath.Dir(b.sock()), &st); err != nil || st.Mode&0o777 != 0o700 {
		t.Errorf("mode %o, %v", st.Mode, err)
	}
	if _, err := Listen(b.root, Info{SID: "k3f9"}, Handlers{}, Options{}); !errors.Is(err, errRunning) {
		t.Errorf("%v", err)
	}
	b.alive()
	for _, sid := range []string{"", "..", "a/b", "a\x1b"} {
		if _, err := Listen(b.root, Info{SID: sid}, Handlers{}, Options{}); err == nil {
			t.Errorf("session %q", sid)
		}
		if _, err := Dial(b.root, sid); err == nil {
			t.Errorf("session %q", sid)
		}
	}
}

func TestDeadSessions(t *testing.T) {
	b := newBench(t, Options{})
	dead := filepath.Join(b.root, "dead")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	plant := func() {
		fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: dead + "/sock"}); err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
	}
	plant()
	if _, err := Dial(b.root, "dead"); !IsDead(err) {
		t.Errorf("%v", err)
	}
	if _, err := Dial(b.root, "never"); !IsDead(err) {
		t.Errorf("%v", err)
	}
	if s, err := States(b.root); err != nil || len(s) != 1 || s[0].Info.SID != "k3f9" {
		t.Errorf("%+v, %v", s, err)
	}
	s, err := Listen(b.root, Info{SID: "dead"}, Handlers{}, Options{}) // takes the dead one's place
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	plant()
	Sweep(b.root, "dead")
	Sweep(b.root, "k3f9") // lives
	Sweep(b.root, "never")
	if ids, err := List(b.root); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
	if ids, err := List(b.root + "/nothing"); err != nil || ids != nil {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestVeryLongFolder(t *testing.T) {
	run := t.TempDir()
	for range 10 {
		run = filepath.Join(run, strings.Repeat("d", 40))
	}
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := Root(run, "", "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(root, Info{SID: "k3f9"}, Handlers{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go s.Serve()
	c, err := Dial(root, "k3f9")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
