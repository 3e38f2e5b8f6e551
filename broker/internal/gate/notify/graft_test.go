//go:build linux

package notify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	mounter "sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
)

// agent is a Grafter and an Opener on the agent that sessions have.
type agent struct {
	w      *world
	a      *mounter.Agent
	placed *atomic.Bool
	trees  *sync.Map
}

func (a agent) Granted(path string) (in bool) {
	a.trees.Range(func(k, _ any) bool { in = in || below(path, k.(string)); return true })
	return in
}
func (a agent) Mounted(string) bool    { return false }
func (a agent) Unmount(string) error   { return nil }
func (a agent) Moves(_, _ string) bool { return false }
func (a agent) Placed() bool           { return a.placed.Load() }
func (a agent) Whole(path string) bool { return a.w.opt.View.(Whole).Whole(path) }
func (a agent) Own(path string) bool   { return !below(path, a.w.path("gated")) }
func (a agent) Unplace(path string)    { _ = a.a.Unplace(path) }
func (a agent) List(dir string, names []os.DirEntry) error {
	a.placed.Store(true)
	for _, e := range names {
		spot := mounter.SpotFile
		if e.IsDir() {
			spot = mounter.SpotDir
		}
		if err := a.a.Place(dir+"/"+e.Name(), spot, ""); err != nil {
			return err
		}
	}
	return nil
}
func (a agent) Place(path, link string) error {
	a.placed.Store(true)
	if link != "" {
		return a.a.Place(path, mounter.SpotLink, link)
	}
	return a.a.Place(path, mounter.SpotDir, "")
}

func (a agent) Graft(path string, write bool) error {
	a.placed.Store(true)
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	spot := mounter.SpotDir
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		spot = mounter.SpotFile
	}
	if err := a.a.Place(path, spot, ""); err != nil {
		return err
	}
	if spot == mounter.SpotDir {
		a.trees.Store(path, true)
	}
	return a.a.Graft(mounter.Graft{Source: path, Target: path, Access: access(write), Dev: st.Dev, Ino: st.Ino})
}

func (a agent) GraftFor(pid int, rel, path string) error {
	if err := a.a.Place(path, mounter.SpotFile, ""); err != nil {
		return err
	}
	return a.a.Graft(mounter.Graft{Source: path, Target: path, Access: plan.ReadOnly, PID: pid, At: rel})
}

func access(write bool) plan.Access {
	if write {
		return plan.ReadWrite
	}
	return plan.ReadOnly
}

func (a agent) Detach(path string, object *os.File, write bool) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(object.Fd()), &st); err != nil {
		return nil, err
	}
	return a.a.Detach(mounter.Graft{Source: path, Access: access(write), Dev: st.Dev, Ino: st.Ino})
}

// grafting is a world with an agent, in which everything is allowed, and a directory as a whole.
func grafting(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.agent = true
	w.opt.Ask = func(_ context.Context, a Ask) Answer {
		yes := Answer{Allow: !strings.HasSuffix(a.Path, "/no"), Write: a.Write}
		if a.Dir && w.opt.View.(Whole).Whole(a.Path) {
			yes.Mount = a.Path
		} else if filepath.Base(a.Path) == "pub" {
			yes.Mount = filepath.Dir(a.Path)
		}
		return yes
	}
	return w
}

// treeing is grafting where the answer about a new name is about the tree around it.
func treeing(t *testing.T, dir string) *world {
	w := grafting(t)
	ask := w.opt.Ask
	w.opt.Ask = func(ctx context.Context, a Ask) Answer {
		if a.Op == "write" && strings.HasPrefix(a.Path, w.path(dir)+"/") {
			return Answer{Allow: true, Write: true, Mount: w.path(dir)}
		}
		return ask(ctx, a)
	}
	return w
}

func TestGraft(t *testing.T) {
	t.Run("open", func(t *testing.T) {
		w := grafting(t)
		p := w.path("gated/yes")
		w.want(w.guest("read", p, p, w.path("gated/no")), "W/gated/yes YES", "W/gated/yes YES", "W/gated/no EACCES")
	})
	t.Run("tree", func(t *testing.T) {
		w := grafting(t)
		w.opt.Ask = func(_ context.Context, a Ask) Answer { return Answer{Allow: true, Mount: w.path("gated/sub")} }
		p := w.path("gated/sub/deep")
		w.want(w.guest("read", p, p, p), "W/gated/sub/deep DEEP", "W/gated/sub/deep DEEP", "W/gated/sub/deep DEEP")
		if len(w.asks) != 1 {
			t.Errorf("asks %+v", w.asks)
		}
	})
	t.Run("read only", func(t *testing.T) {
		w := grafting(t)
		w.want(w.guest("reopen", w.path("gated/yes")), "open ok true", "reopen EROFS", "reopen EROFS", "reopen EROFS",
			"truncate EROFS", "again YES")
	})
	t.Run("directory", func(t *testing.T) {
		w := grafting(t)
		w.want(w.guest("dir", w.path("gated/sub")), "open ok", "list [deep] ok", "deep ok", "../yes ok",
			"../../secret/key EPERM", "create EROFS")
		if w.asked("list", "gated/sub") != 1 || w.asked("open-read", "gated/sub/deep") != 0 {
			t.Errorf("asks %+v", w.asks)
		}
	})
	t.Run("not whole", func(t *testing.T) {
		w := grafting(t)
		w.want(w.guest("dir", w.path("gated")), "open ok", "list [in no sub link out yes] ok", "deep ENOENT",
			"../yes ENOENT", "../../secret/key ENOENT", "create ok")
		if len(w.asks) != 2 || w.asked("list", "gated") != 1 || w.asked("write", "gated/new") != 1 {
			t.Errorf("asks %+v", w.asks)
		}
	})
	t.Run("exec", func(t *testing.T) {
		w := grafting(t)
		w.file("gated/tool", "#!"+w.path("gated/sub/sh")+"\necho tool\n")
		w.file("ro/native", "#!"+w.path("gated/lsh")+"\necho native\n")
		w.link("gated/lsh", "sub/sh")
		w.link("gated/ltool", "tool")
		os.Chmod(w.path("gated/tool"), 0o755)
		os.Chmod(w.path("ro/native"), 0o755)
		b, err := os.ReadFile("/usr/bin/sh")
		if err != nil {
			need.Fact(t, false, "/usr/bin/sh")
		}
		if err := os.WriteFile(w.path("gated/sub/sh"), b, 0o755); err != nil {
			t.Fatal(err)
		}
		w.want(w.guest("exec", w.path("ro/native"), w.path("gated/ltool"), w.path("gated/tool"), w.path("gated/sub")),
			"native ok", "tool ok", "tool ok", " EACCES")
		if w.asked("exec", "gated/sub/sh") != 1 || w.asked("exec", "gated/tool") != 1 ||
			w.asked("open-read", "gated/tool") != 0 {
			t.Errorf("asks %+v", w.asks)
		}
	})
	t.Run("listing", func(t *testing.T) { // names are shown, and nothing that they stand for
		w := grafting(t)
		w.opt.Ask = func(_ context.Context, a Ask) Answer { return Answer{Allow: a.Op == "list"} }
		w.want(w.guest("dir", w.path("gated/sub")), "open ok", "list [deep] ok", "deep EACCES", "../yes EACCES",
			"../../secret/key EPERM", "create EACCES")
		w.want(w.guest("dir", w.path("gated/sub")), "open ok", "list [deep] ok", "deep EACCES", "../yes EACCES",
			"../../secret/key EPERM", "create EACCES")
		if w.asked("list", "gated/sub") != 2 || w.asked("open-read", "gated/sub/deep") != 2 { // who comes next is asked about
			t.Errorf("asks %+v", w.asks)
		}
	})
	t.Run("names", func(t *testing.T) {
		w := treeing(t, "gated/sub")
		w.link("gated/sub/l", "deep")
		w.want(w.guest("names", w.path("gated/sub"), w.path("gated/yes")), "mkdir ok", "mkdir EEXIST", "create ok",
			"read new", "symlink ok", "link ok", "rename ok", "unlink ok", "rmdir ok", "excl EEXIST", "write ok", "truncate ok",
			"chmod ok", "utimes ok")
		if b, err := os.ReadFile(w.path("gated/sub/renamed")); string(b) != "new" || w.asked("write", "gated/sub/d") != 1 {
			t.Errorf("%q %v, asks %+v", b, err, w.asks)
		}
		if b, err := os.ReadFile(w.path("gated/yes")); string(b) != "wr" || err != nil {
			t.Errorf("%q %v", b, err)
		}
	})
	t.Run("names by hand", func(t *testing.T) {
		w := grafting(t)
		w.want(w.guest("names", w.path("gated"), w.path("gated/yes")), "mkdir ok", "mkdir EEXIST", "create ok", "read new",
			"symlink ok", "link EACCES", "rename ok", "unlink ok", "rmdir ok", "excl EEXIST", "write ok", "truncate ok",
			"chmod ok", "utimes ok")
		st, err := os.Stat(w.path("gated/renamed"))
		if err != nil || st.Mode().Perm() != 0o640 {
			t.Errorf("%v %v", st, err)
		}
		if w.asked("write", "gated/d") == 0 || w.asked("write", "gated/renamed") != 1 || w.asked("write", "gated") != 0 {
			t.Errorf("asks %+v", w.asks)
		}
	})
	t.Run("refused", func(t *testing.T) {
		w := grafting(t)
		w.opt.Ask = func(_ context.Context, a Ask) Answer { return Answer{Errno: unix.EPERM} }
		w.want(w.guest("names", w.path("gated"), w.path("gated/yes")), "mkdir EPERM", "mkdir EPERM", "create EPERM",
			"read ENOENT", "symlink EPERM", "link ENOENT", "rename ENOENT", "unlink ENOENT", "rmdir ENOENT", "excl EEXIST",
			"write EPERM", "truncate EPERM", "chmod EPERM", "utimes EPERM")
		if l, _ := os.ReadDir(w.path("gated")); len(l) != 6 {
			t.Errorf("the host's directory holds %v", l)
		}
	})
	t.Run("write needs the word", func(t *testing.T) {
		w := grafting(t)
		w.opt.Ask = func(_ context.Context, a Ask) Answer { return Answer{Allow: a.Op != "stat"} }
		w.guest("change", w.path("gated/yes"))
		if b, _ := os.ReadFile(w.path("gated/yes")); string(b) != "YES" {
			t.Errorf("the host's file is %q", b)
		}
		if len(w.notes) == 0 || w.notes[0].Why != "the grant is for reading only" {
			t.Errorf("notes %+v", w.notes)
		}
	})
	t.Run("a file written after it was executed", func(t *testing.T) {
		w := grafting(t)
		w.file("gated/sub/tool", "#!/bin/sh\necho one\n")
		os.Chmod(w.path("gated/sub/tool"), 0o755)
		p := w.path("gated/sub/tool")
		w.want(w.guest("execwrite", p), "one ok", "write ok", "two ok")
		if w.asked("open-write", "gated/sub/tool") != 1 {
			t.Errorf("asks %+v", w.asks)
		}
	})
}

func TestGraftedWorkingDirectory(t *testing.T) {
	w := grafting(t)
	w.file("gated/sub/tool", "#!/bin/sh\necho one\n")
	os.Chmod(w.path("gated/sub/tool"), 0o755)
	os.Mkdir(w.path("gated/sub/below"), 0o755)
	w.want(w.guest("cwd", w.path("gated/sub")), "chdir ok", "getcwd W/gated/sub", "list [below deep tool] ok",
		"deep DEEP", "stat 4 ok", "exec one ok", "create EROFS", "chdir ok", "list [] ok", "back ok", "deep DEEP")
	if w.asked("list", "gated/sub") != 1 || len(w.asks) != 1 {
		t.Errorf("asks %+v", w.asks)
	}
	w = treeing(t, "gated/sub")
	w.want(w.guest("cwdwrite", w.path("gated/sub")), "mkdir ok", "mkdir ok", "rename ok", "unlink ok")
	if _, err := os.Stat(w.path("gated/sub/a")); err != nil || w.asked("write", "gated/sub/a") != 1 || len(w.asks) != 1 {
		t.Errorf("%v, asks %+v", err, w.asks)
	}
}

// guestNames changes names in a directory and what a file holds.
func guestNames(dir, file string) []string {
	var out []string
	say := func(what string, err error) { out = append(out, what+" "+short(err)) }
	at := func(n string) string { return filepath.Join(dir, n) }
	unix.Umask(0o027)
	say("mkdir", unix.Mkdir(at("d"), 0o777))
	say("mkdir", unix.Mkdir(at("d"), 0o777))
	f, err := os.OpenFile(at("new"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if err == nil {
		_, err = f.WriteString("new")
		f.Close()
	}
	say("create", err)
	b, err := os.ReadFile(at("new"))
	if err == nil {
		err = errors.New(string(b))
	}
	say("read", err)
	say("symlink", unix.Symlink("new", at("to")))
	say("link", unix.Link(at("new"), at("second")))
	say("rename", unix.Rename(at("new"), at("renamed")))
	say("unlink", unix.Unlink(at("to")))
	say("rmdir", unix.Rmdir(at("d")))
	_, err = os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	say("excl", err)
	f, err = os.OpenFile(file, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteString("written")
		f.Close()
	}
	say("write", err)
	say("truncate", unix.Truncate(file, 2))
	say("chmod", unix.Chmod(file, 0o600))
	say("utimes", unix.Utimes(file, []unix.Timeval{{Sec: 1}, {Sec: 2}}))
	return out
}
