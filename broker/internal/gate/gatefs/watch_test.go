//go:build linux

package gatefs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/selftest/need"

	"sbx.example/sbx/broker/internal/inotify"
)

// relying is a project of which the kernel would never ask again by itself.
func relying(t *testing.T) (*sandbox, string) {
	t.Helper()
	host := t.TempDir()
	p := filepath.Join(host, "p")
	write(t, p+"/f", "one")
	write(t, p+"/sub/f", "one")
	sb := start(t, host, served.Tree{Dirs: []served.Dir{{Path: "/p", Kind: served.Guarded,
		Judge: judgeOf(projectRules()...)}}},
		Options{Guard: noMonitor{}}, func(s *Server) { s.rely = time.Hour })
	sb.sh("p", "stat -c %s f sub/f")
	need.Fact(t, sb.relies("f"), "a temporary directory on a file system that reports changes")
	return sb, p
}

// relies says whether many looks at a name cost hardly a request.
func (sb *sandbox) relies(name string) bool {
	before := sb.srv.Requests()
	sb.sh("p", "stat -c %s $(yes "+name+" | head -n 400)")
	return sb.srv.Requests()-before < 100
}

// within repeats a test until it holds.
func within(test string) string {
	return "for i in $(seq 600); do " + test + " && exit 0; sleep 0.1; done; exit 1"
}

func gone(name string) string { return within("test ! -e " + name) }

// TestRelied: a file that does not change costs nothing, and what the host does to it is seen nevertheless.
func TestRelied(t *testing.T) {
	t.Parallel()
	sb, p := relying(t)
	if !sb.relies("sub/f") {
		t.Error("a file below costs requests")
	}
	for _, dir := range []string{"", "sub/"} {
		f := p + "/" + dir + "f"
		see := func(what, test string) {
			t.Helper()
			sb.sh("p/"+dir, "stat f >/dev/null 2>&1; true") // so that the kernel relies on something
			if r := sb.do(order{Kind: "sh", Dir: "p/" + dir, Arg: within(test)}); r.Code != 0 {
				t.Errorf("%sf: %s is not seen inside", dir, what)
			}
		}
		write(t, f, "three")
		see("writing", "test $(stat -c %s f) = 5")
		os.Chmod(f, 0o600)
		see("chmod", "test $(stat -c %a f) = 600")
		write(t, p+"/new", "replaced")
		os.Rename(p+"/new", f)
		see("replacing", "test $(stat -c %s f) = 8")
		os.Rename(f, p+"/other")
		see("moving away", "test ! -e f")
		os.Rename(p+"/other", f)
		see("moving back", "test -e f")
		os.Remove(f)
		see("removing", "test ! -e f")
		os.Mkdir(f, 0o755)
		see("a directory in its place", "test -d f")
		os.Remove(f)
		write(t, f, "a file again")
		see("a file in its place", "test -f f")
	}
	// What the sandbox itself does.
	sb.sh("p",
		`set -e; echo 12 >g; stat g >/dev/null; echo 345 >>g; test $(stat -c %s g) = 7; mv g h; test ! -e g; test $(stat -c %s h) = 7
		ln h i; test $(stat -c %h h) = 2; rm i; test $(stat -c %h h) = 1; chmod 600 h; test $(stat -c %a h) = 600; rm h; test ! -e h`)
	// A checked file is put in place by the server, under the name by which the kernel knows another one.
	sb.sh("p",
		`set -e; mkdir -p .git; echo a >.git/config.lock; stat .git/config.lock >/dev/null; mv .git/config.lock .git/config; test "$(cat .git/config)" = a
		echo bcd >.git/config.lock; stat .git/config.lock .git/config >/dev/null; mv .git/config.lock .git/config; test "$(cat .git/config)" = bcd`)
	// A secret's name shows nothing, whatever moves there.
	sb.sh("p", "cat f >/dev/null")
	os.Rename(p+"/f", p+"/.env")
	sb.sh("p", gone("f"))
	sb.refuse("p", "cat .env", "No such file")
	// More than can be told.
	write(t, p+"/f", "1")
	sb.sh("p", "stat f >/dev/null")
	sb.srv.changed(inotify.Event{Mask: 0x4000}, 0) // IN_Q_OVERFLOW
	before := sb.srv.Requests()
	if sb.sh("p", "stat f >/dev/null"); sb.srv.Requests() == before {
		t.Error("a full queue leaves the kernel with what it knew")
	}
}

// TestReliedOpen: what is opened is what has the name, also where no change is ever told.
func TestReliedOpen(t *testing.T) {
	t.Parallel()
	sb, p := relying(t)
	sb.srv.watches.file.Close()
	sb.srv.watches.mu.Lock()
	known := sb.srv.watches.of[sb.srv.nodes.Get(sb.srv.nodes.PathID("/p", unix.S_IFDIR, ""))].seen["f"]
	sb.srv.watches.mu.Unlock()
	known.Relied.Store(false) // the server knows of a change before the kernel does
	write(t, p+"/new", "replaced")
	os.Rename(p+"/new", p+"/f")
	if got := strings.TrimSpace(sb.sh("p", "stat -c %s f")); got != "3" {
		t.Errorf("the control: stat is told %s bytes, and was to know nothing of the change", got)
	}
	if got := sb.sh("p", "cat f"); got != "replaced" {
		t.Errorf("the old file is read: %q", got)
	}
	sb.sh("p", "stat sub/f >/dev/null")
	write(t, p+"/sub/f", "grown by a bit")
	if got := sb.sh("p", "cat sub/f"); got != "grown by a bit" {
		t.Errorf("a changed file is read as %q", got)
	}
	sb.sh("p", "stat f >/dev/null")
	write(t, p+"/new", "again")
	os.Rename(p+"/new", p+"/f")
	sb.sh("p", `python3 -c "import os; os.truncate(\"f\", 2)"`)
	if got := read(t, p+"/f"); got != "ag" {
		t.Errorf("the old file is cut: the host has %q", got)
	}
	os.Remove(p + "/f")
	sb.refuse("p", "cat f", "No such file")
	// What is open stays, and can be opened again through its descriptor.
	write(t, p+"/open", "kept")
	sb.sh("p", "stat open >/dev/null; exec 3<open; mv open moved; test $(cat /proc/self/fd/3) = kept; cat moved "+
		">/dev/null; rm moved; test $(cat /proc/self/fd/3) = kept")
}

// TestReliedShut: the kernel looks at the mode of no directory, and is to rely on no name in one that was shut, by the
// sandbox or by the host.
func TestReliedShut(t *testing.T) {
	t.Parallel()
	sb, p := relying(t)
	for who, shut := range map[string]func(){
		"the sandbox": func() { sb.sh("p", "chmod 600 sub") },
		"the host": func() {
			if err := os.Chmod(p+"/sub", 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if !sb.relies("sub/f") {
			t.Fatal("the control: the kernel asks for sub/f each time")
		}
		shut()
		if r := sb.do(order{Kind: "sh", Dir: "p", Arg: within("! stat sub/f 2>/dev/null")}); r.Code != 0 {
			t.Errorf("%s has shut a directory, and a name in it is found: %s", who, r.Out)
		}
		sb.sh("p", "chmod 700 sub")
	}
}

// TestDoubtedName: the kernel repeats a walk once that has led to a file which has lost its name. What it finds then is
// opened, whatever has the name by now: nothing of that name is relied on again.
func TestDoubtedName(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	write(t, host+"/f", "whole")
	s, f, _ := reported(t, host, "f")
	need.Fact(t, f.Relied.Load(), "a temporary directory on a file system that reports changes")
	write(t, host+"/g", "whole")
	write(t, host+"/f.new", "replaced")
	if err := os.Rename(host+"/f.new", host+"/f"); err != nil {
		t.Fatal(err)
	}
	s.watches.doubt(s.nodes.Get(nodes.RootID), "f")
	for _, name := range []string{"f", "g"} {
		var out fuse.EntryOut
		h := fuse.InHeader{NodeId: nodes.RootID}
		if code := s.lookupLoop(&h, s.nodes.Get(nodes.RootID), name, &out); code != fuse.OK {
			t.Fatal(code)
		}
		if n := s.nodes.Get(out.NodeId); n.EverRelied.Load() != (name == "g") || n.Doubted.Load() == n.EverRelied.Load() {
			t.Errorf("%s: relied on: %v", name, n.EverRelied.Load())
		}
	}
}
