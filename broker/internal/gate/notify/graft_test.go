package notify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// agent grafts with root's rights, in place of the agent.
type agent struct{ w *world }

func (a agent) Graft(_ context.Context, path string, g Grant) error {
	if g == GrantName {
		path = filepath.Dir(path)
	}
	done := make(chan error)
	go func() { done <- a.graft(path, g) }() // its thread ends with it
	return <-done
}

func (a agent) graft(path string, g Grant) error {
	runtime.LockOSThread()
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if g == GrantRead {
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	ns, err := os.Open("/proc/" + strconv.Itoa(a.w.pid) + "/ns/mnt")
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("entering: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = os.Mkdir(path, 0o755)
	} else {
		err = os.WriteFile(path, nil, 0o644)
	}
	if err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func TestGraft(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("missing: root, for a Grafter")
	}
	world := func(t *testing.T) *world {
		w := newWorld(t)
		w.opt.Grafter = agent{w}
		w.opt.Ask = func(_ context.Context, a Ask) Answer { return Answer{Allow: true, Keep: true, Write: true} }
		return w
	}
	t.Run("open", func(t *testing.T) {
		w := world(t)
		p := w.path("gated/yes")
		w.want(w.guest("read", p, p, p), "W/gated/yes YES", "W/gated/yes YES", "W/gated/yes YES")
		if len(w.asks) != 1 {
			t.Errorf("asks %+v", w.asks)
		}
	})
	t.Run("read only", func(t *testing.T) {
		w := world(t)
		w.want(w.guest("reopen", w.path("gated/yes")), "open ok true", "reopen EROFS", "reopen EROFS", "reopen EROFS", "truncate EROFS", "again YES")
	})
	t.Run("directory", func(t *testing.T) {
		w := world(t)
		w.want(w.guest("dir", w.path("gated/sub")), "open ok", "list [deep] ok", "deep ok", "../yes ok", "../../secret/key EPERM", "create EACCES")
	})
	t.Run("exec", func(t *testing.T) {
		w := world(t)
		w.file("gated/tool", "#!"+w.path("gated/sub/sh")+"\necho tool\n")
		w.file("ro/native", "#!"+w.path("gated/sub/sh")+"\necho native\n")
		os.Chmod(w.path("gated/tool"), 0o755)
		os.Chmod(w.path("ro/native"), 0o755)
		b, err := os.ReadFile("/usr/bin/sh")
		if err != nil {
			cannot(t, "/usr/bin/sh")
		}
		if err := os.WriteFile(w.path("gated/sub/sh"), b, 0o755); err != nil {
			t.Fatal(err)
		}
		w.want(w.guest("exec", w.path("ro/native"), w.path("gated/tool")), "native ok", "tool ok")
		if w.asked("exec", "gated/sub/sh") != 1 || w.asked("exec", "gated/tool") > 1 {
			t.Errorf("asks %+v", w.asks)
		}
	})
	t.Run("write needs the word", func(t *testing.T) {
		w := world(t)
		w.opt.Ask = func(_ context.Context, a Ask) Answer { return Answer{Allow: a.Op != "stat", Keep: true} }
		w.guest("change", w.path("gated/yes"))
		if b, _ := os.ReadFile(w.path("gated/yes")); string(b) != "YES" {
			t.Errorf("the host's file is %q", b)
		}
		if len(w.notes) == 0 || w.notes[0].Why != "the grant is for reading only" {
			t.Errorf("notes %+v", w.notes)
		}
	})
}
