//go:build linux

package late

import (
	"errors"
	"maps"
	"os"
	"path"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/secrets"
)

// TestLooksAgainInSilence: a program that fills the kernel's queue as often as it likes has everything looked at again,
// and cannot fill a terminal with what was said before.
func TestLooksAgainInSilence(t *testing.T) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var said []string
	way := t.TempDir()
	for _, name := range [...]string{"gone", "lost"} {
		if err := os.Symlink(way, way+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	w := &Watcher{fd: fd, said: map[string]bool{}, configs: map[int32]map[string][]string{}, Options: Options{
		Files:   []string{way + "/gone/.git/config", way + "/lost/.git/config"},
		Changed: func(string) {},
		Warn:    func(text string) { said = append(said, text) }}}
	for range 3 {
		w.event(-1, unix.IN_Q_OVERFLOW, "")
	}
	if len(said) != 2 || said[0] == said[1] {
		t.Errorf("each of two files has to be warned of once: %q", said)
	}
}

// TestSettingsOfAWorktree: that a directory is a worktree's is said after the file .git that leads to it, and its
// settings come later still.
func TestSettingsOfAWorktree(t *testing.T) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	top := t.TempDir()
	git := top + "/main/.git/worktrees/tree"
	for _, dir := range [...]string{git, top + "/tree"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(p, text string) {
		t.Helper()
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(top+"/tree/.git", "gitdir: "+git+"\n")
	looked := map[string]int{}
	w := &Watcher{fd: fd, said: map[string]bool{}, configs: map[int32]map[string][]string{}, Options: Options{
		Changed: func(p string) { looked[path.Base(p)]++ }, Warn: func(text string) { t.Error(text) }}}
	w.repository(dir{&Tree{Path: top, Granted: top}, top + "/tree", nil}, ".git", false)
	before := maps.Clone(looked)
	for _, name := range [...]string{"commondir", "config.worktree", "other"} {
		write(git+"/"+name, "../..\n")
	}
	buf := make([]byte, 1<<12)
	n, err := unix.Read(fd, buf)
	if err != nil {
		t.Fatal(err)
	}
	if w.events(buf[:n]); looked["config.worktree"] == before["config.worktree"] {
		t.Error("the settings of the worktree are not looked at")
	}
	if looked["config"] != before["config"] || looked["other"] > 0 { // the control
		t.Errorf("looked at %v, before %v", looked, before)
	}
}

// exchange is what a program does with two directories at any moment.
func exchange(t *testing.T, a, b string) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
}

// mounts stands for the sandbox's: covers lie on objects.
type mounts map[uint64]bool

func inode(p string) uint64 {
	st, _ := host.FS{}.Lstat(p)
	return st.Ino
}

func (m mounts) cover(p string, _ bool, on guard.ID) (func(string) error, error) {
	if m[on.Ino] || inode(p) != on.Ino {
		return nil, unix.ESTALE
	}
	m[on.Ino] = true
	return func(p string) error {
		if inode(p) != on.Ino {
			return unix.ESTALE
		}
		delete(m, on.Ino)
		return nil
	}, nil
}

func (m mounts) mounted(p string) error {
	if !m[inode(p)] {
		return unix.EINVAL
	}
	return nil
}

// TestMadeBeforeItIsWatched: another name of a secret that the host makes when the plan has been made, and nothing is
// watched yet, is covered. What was there when it was planned is the plan's to judge.
func TestMadeBeforeItIsWatched(t *testing.T) {
	top := t.TempDir()
	if err := os.WriteFile(top+"/secret", []byte("TOKEN=x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(top+"/secret", top+"/later"); err != nil {
		t.Fatal(err)
	}
	judge, err := guard.NewJudge(guard.BuiltIn(), guard.HideSecrets)
	if err != nil {
		t.Fatal(err)
	}
	for planned, want := range map[time.Time]bool{time.Now().Add(-time.Hour): true, time.Now().Add(time.Hour): false} {
		fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		covered := false
		var sockets guard.Made
		w := &Watcher{fd: fd, said: map[string]bool{}, covered: map[guard.ID][]remove{}, byWd: map[int32]dir{},
			configs: map[int32]map[string][]string{}, shut: map[string]guard.ID{}, Options: Options{Planned: planned,
				Trees: []*Tree{{Path: top, Granted: top, Place: judge.Root()}}, Secrets: secrets.New(host.FS{}, nil, ""),
				Sockets: &sockets, Making: &sync.Mutex{}, Linked: func(p, _ string) bool { return p == top+"/later" },
				Warn: func(text string) { t.Error(text) },
				Cover: func(p string, _ bool, _ guard.ID) (func(string) error, error) {
					covered = p == top+"/later"
					return func(string) error { return nil }, nil
				}}}
		if w.all(false); covered != want {
			t.Errorf("planned at %v: covered %t", planned, covered)
		}
	}
}

// TestExchangedWhileJudged: a program that exchanges the directory of a secret with another one, or with a link, while
// that is judged or covered, gets neither the secret nor has the cover of another one taken away.
func TestExchangedWhileJudged(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{"sub/.env": "TOKEN=x", "fake/.env/pyvenv.cfg": "", "out/.env": "TOKEN=y"} {
		if err := errors.Join(os.MkdirAll(path.Dir(path.Join(top, name)), 0o700),
			os.WriteFile(path.Join(top, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("out", top+"/link"); err != nil {
		t.Fatal(err)
	}
	m := mounts{}
	var sockets guard.Made
	before := func() {}
	w := &Watcher{said: map[string]bool{}, covered: map[guard.ID][]remove{}, Options: Options{
		Secrets: secrets.New(host.FS{}, nil, ""), Sockets: &sockets, Making: &sync.Mutex{}, Mounted: m.mounted,
		Warn: func(text string) { t.Error(text) },
		Cover: func(p string, dir bool, on guard.ID) (func(string) error, error) {
			before()
			return m.cover(p, dir, on)
		}}}
	d, p := dir{Tree: &Tree{Path: top, Granted: top}, path: top + "/sub"}, top+"/sub/.env"
	env := inode(p)

	before = func() { exchange(t, top+"/sub", top+"/fake") }
	if w.judge(d, p, true) || len(m) != 0 {
		t.Errorf("what was judged has another path now, and yet there is a cover: %v", m)
	}
	before = func() {}
	exchange(t, top+"/sub", top+"/fake") // which is an event
	if !w.judge(d, p, true) || !m[env] || len(m) != 1 {
		t.Errorf("covered: %v, want %d", m, env)
	}
	if !w.judge(d, p, true) || len(m) != 1 {
		t.Errorf("covered again: %v", m)
	}
	exchange(t, top+"/sub", top+"/fake") // now the environment has the path
	if w.judge(d, p, true) || !m[env] {
		t.Errorf("the cover of %d has gone: %v", env, m)
	}
	exchange(t, top+"/sub", top+"/link") // and now a link to another secret
	if w.judge(d, p, true) || len(m) != 1 {
		t.Errorf("covered by way of a link: %v", m)
	}
	exchange(t, top+"/sub", top+"/link")
	exchange(t, top+"/sub", top+"/fake")
	if err := errors.Join(os.WriteFile(p+".new", []byte("TOKEN=z"), 0o600), os.Rename(p+".new", p)); err != nil {
		t.Fatal(err)
	}
	delete(m, env) // the host has replaced it: its cover goes with it
	if !w.judge(d, p, true) || !m[inode(p)] || len(m) != 1 {
		t.Errorf("what replaced it is not covered: %v", m)
	}
}
