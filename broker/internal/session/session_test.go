//go:build linux

package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
)

func TestNewIDIsValidAndNew(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewID()
		if err := plan.ValidSession(id); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(id, "il1o0") {
			t.Errorf("%s has a letter that looks like another", id)
		}
		seen[id] = true
	}
	if len(seen) < 995 {
		t.Errorf("%d different ids of 1000", len(seen))
	}
}

func TestRoot(t *testing.T) {
	for _, c := range [][3]string{{"/s", "/h", "/s/sbx/sessions"}, {"", "/h", "/h/.local/state/sbx/sessions"},
		{"rel", "/h", "/h/.local/state/sbx/sessions"}} {
		if got, err := Root(c[0], c[1]); err != nil || got != c[2] {
			t.Errorf("%q: %s, %v", c, got, err)
		}
	}
	if _, err := Root("", ""); err == nil || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
		t.Errorf("got %v, want an error that says what to set", err)
	}
}

func TestCreate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	s, err := Create(root, "one")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if !Alive(s.Dir) {
		t.Error("an open session is not alive")
	}
	if _, err := Create(root, "one"); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second one: %v", err)
	}
	for _, id := range []string{".", "..", "a/b", "-x", "a\x00", strings.Repeat("x", 65), "ä"} {
		if _, err := Create(root, id); err == nil || !strings.Contains(err.Error(), "session id") {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := s.WriteFile("plan.json", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.Dir + "/plan.json"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := s.WriteFile("log.jsonl", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(false); err != nil || Alive(s.Dir) {
		t.Errorf("closed: %v, alive %t", err, Alive(s.Dir))
	}
	if _, err := os.Stat(s.Dir + "/plan.json"); err != nil {
		t.Error("the record is gone")
	}
}

func TestCreateRefusesRootOfOthers(t *testing.T) {
	dir := t.TempDir()
	for name, make := range map[string]func(string) error{
		"writable by all": func(p string) error { _ = os.Mkdir(p, 0o755); return os.Chmod(p, 0o777) },
		"link":            func(p string) error { return os.Symlink(dir, p) },
		"file":            func(p string) error { return os.WriteFile(p, nil, 0o600) },
	} {
		p := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := make(p); err != nil {
			t.Fatal(err)
		}
		if s, err := Create(p, ""); err == nil {
			t.Errorf("%s is taken as the sessions' folder: %s", name, s.Dir)
		}
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	root := t.TempDir()
	s, err := Create(root, "")
	if err != nil {
		t.Fatal(err)
	}
	s.Discard()
	if list, _ := os.ReadDir(root); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

// TestRemoveDeepTree: more directories in each other than there are descriptors go as well, whatever their modes are.
func TestRemoveDeepTree(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	deep := func() string {
		top := filepath.Join(t.TempDir(), "top")
		for range 5 { // in pieces: a path has 4096 bytes
			bottom, outer := top+strings.Repeat("/d", 100), top+"-outer"
			if err := errors.Join(os.MkdirAll(bottom, 0o700), os.Chmod(bottom, 0o500), os.Mkdir(outer, 0o700),
				os.Rename(top, outer+"/d"), os.Rename(outer, top)); err != nil {
				t.Fatal(err)
			}
		}
		return top
	}
	top, control := deep(), deep()
	low := limit
	low.Cur = 64
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
		_ = RemoveTree(control)
	}()
	if err := os.RemoveAll(control); !errors.Is(err, unix.EMFILE) {
		t.Errorf("the control was removed without more descriptors: %v", err)
	}
	if err := RemoveTree(top); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestRemoveTree: whatever modes a tree has, it goes, and what a link in it leads to stays as it is.
func TestRemoveTree(t *testing.T) {
	dir := t.TempDir()
	top, closed, outside := filepath.Join(dir, "top"), filepath.Join(dir, "top", "closed"), filepath.Join(dir, "outside")
	for _, d := range []string{filepath.Join(closed, "in"), outside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{top, closed} {
		if err := os.Symlink(outside, filepath.Join(d, "link")); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{outside, closed, top} {
		if err := os.Chmod(d, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveTree(top); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
	if info, err := os.Lstat(outside); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("what a link leads to: %v, %v", info.Mode(), err)
	}
}

func TestLayersComeAndGo(t *testing.T) {
	s, err := Create(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Mounts: []plan.Mount{{Upper: s.Dir + "/overlay/1/upper", Work: s.Dir + "/overlay/1/work"},
		{Source: s.Dir + "/overlay/own/1"}, {Source: "/elsewhere"}}}
	if err := (child.Folder{Dirs: s.Layers(p)}).Make(); err != nil {
		t.Fatal(err)
	}
	deep := s.Dir + "/overlay/1/upper/d/e"
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(deep), 0); err != nil { // as a program may leave it
		t.Fatal(err)
	}
	if err := s.Close(false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.Dir + "/overlay"); !os.IsNotExist(err) {
		t.Errorf("layers are left: %v", err)
	}
}

func TestSweep(t *testing.T) {
	root := t.TempDir()
	dead := func(name string, kept bool) string {
		s, err := Create(root, name)
		if err != nil {
			t.Fatal(err)
		}
		_ = os.MkdirAll(s.Dir+"/overlay/1/upper", 0o700)
		_ = s.WriteFile("log.jsonl", nil)
		if kept {
			_ = s.WriteFile("kept", nil)
		}
		unix.Close(s.lock) // as the kernel does when a broker is killed
		return s.Dir
	}
	gone, kept := dead("gone", false), dead("kept", true)
	live, err := Create(root, "live")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(live.Dir+"/overlay/1", 0o700); err != nil {
		t.Fatal(err)
	}
	for range keepRecords + slack + 2*atOnce {
		dead("", false)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(gone+"/log.jsonl", old, old); err != nil {
		t.Fatal(err)
	}
	Sweep(root)
	exist := func(p string) bool { _, err := os.Lstat(p); return err == nil }
	if exist(gone) {
		t.Error("the oldest record is still there")
	}
	if !exist(kept + "/overlay/1") {
		t.Error("what was kept is gone")
	}
	if !exist(live.Dir + "/overlay/1") {
		t.Error("a living session lost its layers")
	}
	count := func() int {
		list, _ := os.ReadDir(root)
		return len(list)
	}
	if n, want := count(), keepRecords+slack+2*atOnce+3-atOnce; n != want {
		t.Errorf("%d records after the first look, want %d", n, want)
	}
	for range 5 {
		Sweep(root)
	}
	if n := count(); n > keepRecords+slack+2 || n < keepRecords {
		t.Errorf("%d records in the end", n)
	}
}
