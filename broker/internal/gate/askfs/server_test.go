//go:build linux

package askfs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
)

// scene is a server of one place, as the kernel asks it.
type scene struct {
	t     *testing.T
	s     *Server
	dir   string
	asked []string
	say   func(r grants.Request) grants.Answer
}

func newScene(t *testing.T, made ...string) *scene {
	t.Helper()
	c := &scene{t: t, dir: filepath.Join(t.TempDir(), "place")}
	for _, d := range []string{"made/sub", "dir"} {
		if err := os.MkdirAll(filepath.Join(c.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"f", "g", "secret", "dir/x", "made/sub/y"} {
		c.write(f, "host "+f)
	}
	if err := unix.Mkfifo(filepath.Join(c.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.say = func(grants.Request) grants.Answer { return grants.Answer{Allow: true, Once: true} }
	var err error
	c.s, err = newServer(Options{Places: []Place{{Host: c.dir, No: unix.ENOENT, Made: made}}, Ready: "ready",
		Ask: func(_ context.Context, r grants.Request) grants.Answer {
			c.asked = append(c.asked, r.Op+" "+filepath.Base(r.Path))
			return c.say(r)
		},
		Hidden:  func(_ uint32, p string, _ *unix.Stat_t, _ bool) bool { return filepath.Base(p) == "secret" },
		Outside: func(uint32) uint32 { return uint32(os.Getpid()) }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *scene) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// walk looks names up, each in the one before it, beginning with the place.
func (c *scene) walk(names ...string) (uint64, fuse.Status) {
	at := uint64(fuse.FUSE_ROOT_ID)
	for _, n := range append([]string{"0"}, names...) {
		var out fuse.EntryOut
		if code := c.s.Lookup(nil, &fuse.InHeader{NodeId: at}, n, &out); code != fuse.OK {
			return 0, code
		}
		at = out.NodeId
	}
	return at, fuse.OK
}

func (c *scene) ready() {
	_ = c.s.Lookup(nil, &fuse.InHeader{NodeId: fuse.FUSE_ROOT_ID}, "ready", &fuse.EntryOut{})
}

// read opens a node and reads it.
func (c *scene) read(id uint64) (string, fuse.Status) {
	var out fuse.OpenOut
	if code := c.s.Open(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: id}}, &out); code != fuse.OK {
		return "", code
	}
	buf := make([]byte, 100)
	n, err := unix.Pread(c.s.files.Get(out.Fh).fd, buf, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(buf[:n]), fuse.OK
}

func (c *scene) wants(what string, got fuse.Status, want unix.Errno, asked ...string) {
	c.t.Helper()
	if got != fuse.Status(want) || !slices.Equal(c.asked, asked) {
		c.t.Errorf("%s: %v, asked about %q; want %v and %q", what, got, c.asked, want, asked)
	}
	c.asked = nil
}

// Until the sandbox is built nobody is asked: whoever builds it makes what he needs, and walks through what he made.
func TestBuilding(t *testing.T) {
	c := newScene(t, "made")
	_, code := c.walk("f")
	c.wants("before it is built", code, unix.ENOENT)
	_, code = c.walk("made")
	c.wants("what is made, before", code, 0)
	c.ready()
	_, code = c.walk("made")
	c.wants("what is made", code, 0)
	_, code = c.walk("made", "sub")
	c.wants("what the host has in it", code, 0, "stat sub")
}

func TestAsking(t *testing.T) {
	c := newScene(t)
	c.ready()
	id, code := c.walk("f")
	c.wants("a file", code, 0, "stat f")
	_, code = c.walk("f")
	c.wants("what the kernel knows", code, 0)
	text, code := c.read(id)
	if c.wants("reading it", code, 0, "open f"); text != "host f" {
		t.Errorf("read %q", text)
	}
	var out fuse.OpenOut
	code = c.s.Open(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: id}, Flags: unix.O_RDWR}, &out)
	c.wants("writing it", code, unix.EROFS)
	_, code = c.walk("secret")
	c.wants("what is hidden", code, unix.ENOENT)
	_, code = c.walk("pipe")
	c.wants("a pipe", code, unix.ENOENT)
	_, code = c.walk("none")
	c.wants("what is missing", code, unix.ENOENT)
	c.say = func(grants.Request) grants.Answer { return grants.Answer{} }
	_, code = c.walk("g")
	c.wants("a no", code, unix.ENOENT, "stat g")
	_, code = c.walk("g")
	c.wants("a no before", code, unix.ENOENT)
}

// A yes to a tree is one to all below it, but for what is hidden.
func TestTree(t *testing.T) {
	c := newScene(t)
	c.ready()
	c.write("dir/secret", "CANARY")
	c.say = func(r grants.Request) grants.Answer { return grants.Answer{Allow: true, Path: r.Path} }
	_, code := c.walk("dir", "x")
	c.wants("in a tree", code, 0, "stat dir")
	_, code = c.walk("dir", "secret")
	c.wants("hidden in it", code, unix.ENOENT)
	// What the host puts in the place of a granted file is shown under the number that the kernel knows.
	id, _ := c.walk("dir", "x")
	c.write("dir/new", "new")
	if err := os.Rename(filepath.Join(c.dir, "dir/new"), filepath.Join(c.dir, "dir/x")); err != nil {
		t.Fatal(err)
	}
	again, code := c.walk("dir", "x")
	text, _ := c.read(again)
	if c.wants("replaced", code, 0); again != id || text != "new" {
		t.Errorf("node %d is %d, with %q", id, again, text)
	}
}

// A yes for this once is one to what was there when it was asked for, whatever has its name since, or leads there.
func TestSwapped(t *testing.T) {
	for name, swap := range map[string]func(c *scene) error{
		"another file": func(c *scene) error {
			return os.Rename(filepath.Join(c.dir, "g"), filepath.Join(c.dir, "dir/x"))
		},
		"a link": func(c *scene) error {
			p := filepath.Join(c.dir, "dir/x")
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Symlink("../g", p)
		},
		"a link on the way": func(c *scene) error {
			p := filepath.Join(c.dir, "dir")
			if err := os.Rename(p, p+"2"); err != nil {
				return err
			}
			if err := os.Mkdir(p+"3", 0o755); err != nil {
				return err
			}
			if err := os.Rename(filepath.Join(c.dir, "g"), p+"3/x"); err != nil {
				return err
			}
			return os.Symlink("dir3", p)
		},
	} {
		c := newScene(t)
		c.ready()
		c.say = func(r grants.Request) grants.Answer {
			if filepath.Base(r.Path) == "x" && r.Op == "stat" {
				if err := swap(c); err != nil {
					t.Error(err)
				}
			}
			return grants.Answer{Allow: true, Once: true}
		}
		id, code := c.walk("dir", "x")
		if code != fuse.OK {
			t.Errorf("%s: looking up: %v", name, code)
		}
		if text, code := c.read(id); code == fuse.OK {
			t.Errorf("%s: read %q", name, text)
		}
	}
	c := newScene(t) // the control: nothing is swapped
	c.ready()
	id, _ := c.walk("dir", "x")
	if text, code := c.read(id); text != "host dir/x" {
		t.Errorf("read %q: %v", text, code)
	}
}
