//go:build linux

package gatefs

import (
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/inotify"
)

// TestRepeatOldNews: by the time that the server hears that a name has gone or was replaced, what has it may have been
// made since. That one is not repeated to have gone: a directory would be dead for everybody inside.
func TestRepeatOldNews(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	dir := served.Dir{Path: "/", Host: host, Kind: served.Guarded, Judge: judgeOf(projectRules()...)}
	s, err := newServer(served.Tree{Dirs: []served.Dir{dir}}, Options{Repeat: func(names.Repeat) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	s.repeats.begun = true // nobody repeats, and nothing is told but by this test
	s.watches.begun, s.watches.fd, s.watches.of = true, -1, map[*nodes.Node]*watch{}
	top := s.nodes.Get(nodes.RootID)
	known := func() *nodes.Node {
		var out fuse.EntryOut
		if code := s.lookupLoop(&fuse.InHeader{NodeId: nodes.RootID}, top, "d", &out); code != fuse.OK {
			t.Fatal(code)
		}
		return s.nodes.Get(out.NodeId)
	}
	if err := os.Mkdir(host+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	d := known()
	last := func(mask uint32) (r repeat) {
		s.repeats.list = nil
		s.repeats.add(s, top, inotify.Event{Mask: mask | unix.IN_ISDIR, Name: "d"}, d)
		if n := len(s.repeats.list); n > 0 {
			r = s.repeats.list[n-1]
		}
		return r
	}
	for _, mask := range []uint32{unix.IN_DELETE, unix.IN_MOVED_TO} {
		if last(mask); len(s.repeats.list) > 0 {
			t.Errorf("%#x of a directory that is there is repeated", mask)
		}
	}
	// The control: one that has gone, and one that was replaced.
	if err := os.Rename(host+"/d", host+"/e"); err != nil {
		t.Fatal(err)
	}
	if r := last(unix.IN_DELETE); r.what != names.Removed || r.node != d {
		t.Error("who watches a directory that has gone does not hear of it")
	}
	if err := os.Mkdir(host+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	if r := last(unix.IN_MOVED_TO); r.what != names.Moved || r.instead != d {
		t.Error("who watches a directory that was replaced does not hear of it")
	}
}

// repeatsInto is a server of a project in which nothing is told but by the test.
func repeatsInto(t *testing.T, host string) *Server {
	t.Helper()
	s, err := newServer(served.Tree{Dirs: []served.Dir{{Path: "/", Host: host, Kind: served.Guarded,
		Judge: judgeOf(projectRules()...)}}},
		Options{Repeat: func(names.Repeat) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.release)
	s.watches.begun, s.watches.fd, s.watches.of = true, -1, map[*nodes.Node]*watch{}
	return s
}

// TestRepeatLeavesDirectories: whoever is in a directory keeps it, whatever is being repeated of its name: the kernel
// is told the truth about that, and nothing is made, removed or moved there.
func TestRepeatLeavesDirectories(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	s := repeatsInto(t, host)
	top := s.nodes.Get(nodes.RootID)
	look := func(pid uint32, name string) (uint64, fuse.Status) {
		var out fuse.EntryOut
		h := fuse.InHeader{NodeId: nodes.RootID}
		h.Pid = pid
		code := s.Lookup(nil, &h, name, &out)
		return out.NodeId, code
	}
	for _, name := range []string{"in", "new"} {
		if err := os.Mkdir(host+"/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in, code := look(1, "in") // somebody enters it
	if code != fuse.OK {
		t.Fatal(code)
	}
	away := s.repeats.elsewhere(s)
	for _, what := range []names.Happening{names.Made, names.Removed, names.Moved, names.Modified, names.Attributes} {
		r := repeat{what: what, typ: unix.S_IFDIR, dir: top, name: "in", to: away, toName: anything}
		s.repeats.now.Store(&r)
		if id, code := look(0, "in"); code != fuse.OK || id != in {
			t.Errorf("%d: a directory that somebody is in is said to be %d, %v; want %d", what, id, code, in)
		}
		var code fuse.Status
		switch what {
		case names.Removed:
			code = s.Rmdir(nil, &fuse.InHeader{NodeId: nodes.RootID}, "in")
		case names.Moved:
			code = s.Rename(nil, &fuse.RenameIn{InHeader: fuse.InHeader{NodeId: nodes.RootID}, Newdir: away.ID}, "in", anything)
		default:
			continue
		}
		if code != fuse.EBUSY {
			t.Errorf("%d of a directory that somebody is in is repeated: %v", what, code)
		}
	}
	s.repeats.now.Store(&repeat{what: names.Moved, typ: unix.S_IFDIR, dir: away, name: anything, to: top, toName: "in"})
	if id, code := look(0, "in"); code != fuse.OK || id != in {
		t.Errorf("a directory has come: %d, %v; want %d", id, code, in)
	}
	// The control: one that nobody has entered is made and moved again.
	s.repeats.now.Store(&repeat{what: names.Made, typ: unix.S_IFDIR, dir: top, name: "new"})
	if _, code := look(0, "new"); code != fuse.ENOENT {
		t.Errorf("a new directory is not told of: %v", code)
	}
	s.repeats.now.Store(&repeat{what: names.Removed, typ: unix.S_IFDIR, dir: top, name: "new"})
	if code := s.Rmdir(nil, &fuse.InHeader{NodeId: nodes.RootID}, "new"); code != fuse.OK {
		t.Errorf("that one has gone is not told of: %v", code)
	}
}

// opened has somebody hold a node's file open.
func opened(t *testing.T, s *Server, n *nodes.Node, flags int, path string) (fh uint64) {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s.files.Add(&handle{fd: fd, node: n})
}

// TestRepeatKeepsWhatIsMapped: a file that the host has removed or replaced keeps its size, or who has it mapped would
// be killed (SIGBUS) when he reads on.
func TestRepeatKeepsWhatIsMapped(t *testing.T) {
	t.Parallel()
	for _, nofile := range []int{100, 0} { // 0: the server holds what is open, and nothing else
		host := t.TempDir()
		s := repeatsInto(t, host)
		s.nodes.Most = nofile
		write(t, host+"/f", "mapped")
		var out fuse.EntryOut
		if code := s.lookupLoop(&fuse.InHeader{NodeId: nodes.RootID}, s.nodes.Get(nodes.RootID), "f", &out); code != fuse.OK {
			t.Fatal(code)
		}
		top, f := s.nodes.Get(nodes.RootID), s.nodes.Get(out.NodeId)
		opened(t, s, f, unix.O_RDONLY, host+"/f")
		if err := os.Remove(host + "/f"); err != nil {
			t.Fatal(err)
		}
		r := repeat{what: names.Removed, typ: unix.S_IFREG, dir: top, name: "f", node: f}
		came := repeat{what: names.Moved, typ: unix.S_IFREG, dir: s.repeats.elsewhere(s), to: top, toName: "f", instead: f}
		for _, r := range []*repeat{&r, &came} {
			s.repeats.now.Store(r)
			out = fuse.EntryOut{}
			if code := s.Lookup(nil, &fuse.InHeader{NodeId: nodes.RootID}, "f", &out); code != fuse.OK || out.NodeId != f.ID {
				t.Fatal(code, out.NodeId)
			}
			if out.Attr.Size != 6 {
				t.Errorf("%d: a file of 6 bytes that is open is said to have %d", r.what, out.Attr.Size)
			}
		}
		s.repeats.now.Store(&repeat{what: names.Removed, typ: unix.S_IFREG, dir: top, name: "f"}) // the control
		if code := s.Lookup(nil, &fuse.InHeader{NodeId: nodes.RootID}, "f", &out); code != fuse.OK || out.NodeId == f.ID ||
			out.Attr.Size != 0 {
			t.Errorf("a file that nobody knows: %v, %d with %d bytes", code, out.NodeId, out.Attr.Size)
		}
	}
}

// TestRepeatOldSize: by the time that a change of a name is repeated, the name may have a file that is being written.
// Nobody inside knows that one, and whoever opens it when it is whole must not be told the size that it had.
func TestRepeatOldSize(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	s := repeatsInto(t, host)
	write(t, host+"/f", "")
	top := s.nodes.Get(nodes.RootID)
	look := func(pid uint32) uint64 {
		var out fuse.EntryOut
		h := fuse.InHeader{NodeId: nodes.RootID}
		h.Pid = pid
		if code := s.Lookup(nil, &h, "f", &out); code != fuse.OK {
			t.Fatal(code)
		}
		return out.NodeId
	}
	r := repeat{what: names.Modified, typ: unix.S_IFREG, dir: top, name: "f"}
	s.repeats.now.Store(&r)
	if stand, f := look(0), look(1); stand == f {
		t.Error("the change of a file that nobody knew is repeated on the file itself")
	}
	if again, f := look(0), look(1); again != f { // the control
		t.Error("who watches a file that is known does not hear of its change")
	}
	set := fuse.SetAttrIn{InHeader: fuse.InHeader{NodeId: look(1)}}
	set.Valid = fuse.FATTR_MTIME
	out := fuse.AttrOut{AttrValid: 1, AttrValidNsec: 1}
	if code := s.SetAttr(nil, &set, &out); code != fuse.OK || out.AttrValid != 0 || out.AttrValidNsec != 0 {
		t.Errorf("%v: the kernel relies on a size that may be old for %d s and %d ns", code, out.AttrValid, out.AttrValidNsec)
	}
}

// TestRepeatProgramThatRuns: a file that runs inside cannot be opened for writing, not even to be closed at once. Who
// watches it hears that it was changed, and nobody is told that events are lost.
func TestRepeatProgramThatRuns(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	var heard []names.Happening
	runs := func(r names.Repeat) error {
		if r.What == names.Written {
			return fmt.Errorf("repeating %s: %w", r.Name, unix.ETXTBSY)
		}
		heard = append(heard, r.What)
		return nil
	}
	dir := served.Dir{Path: "/", Host: t.TempDir(), Kind: served.Guarded, Judge: judgeOf(projectRules()...)}
	s, err := newServer(served.Tree{Dirs: []served.Dir{dir}}, Options{Repeat: runs, Log: log.New(&said, "", 0)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	top := s.nodes.Get(nodes.RootID)
	s.repeats.do(s, repeat{what: names.Written, typ: unix.S_IFREG, dir: top, to: top, name: "prog"})
	if len(heard) != 1 || heard[0] != names.Modified || said.Len() > 0 {
		t.Errorf("heard %v, and the person is told %q", heard, said.String())
	}
	runs = func(names.Repeat) error { return unix.EIO }
	s.opts.Repeat = runs
	s.repeats.do(s, repeat{what: names.Written, typ: unix.S_IFREG, dir: top, to: top, name: "prog"})
	if !strings.Contains(said.String(), "does not hear") { // the control
		t.Error("nobody is told that an event is lost")
	}
}

// TestRepeatAstray: the directory of what is repeated may have been replaced since, and its path leads to the one that
// the host has now. Nothing is made, removed or moved there in earnest.
func TestRepeatAstray(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	s := repeatsInto(t, host)
	write(t, host+"/f", "the host's")
	if err := os.Mkdir(host+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	top, other := fuse.InHeader{NodeId: nodes.RootID}, s.repeats.elsewhere(s)
	var out fuse.EntryOut
	calls := map[string]func() fuse.Status{
		"unlink": func() fuse.Status { return s.Unlink(nil, &top, "f") },
		"rmdir":  func() fuse.Status { return s.Rmdir(nil, &top, "d") },
		"rename": func() fuse.Status {
			return s.Rename(nil, &fuse.RenameIn{InHeader: top, Newdir: nodes.RootID}, "f", "g")
		},
		"mkdir":   func() fuse.Status { return s.Mkdir(nil, &fuse.MkdirIn{InHeader: top, Mode: 0o700}, "new", &out) },
		"symlink": func() fuse.Status { return s.Symlink(nil, &top, ".", "link", &out) },
		"mknod": func() fuse.Status {
			return s.Mknod(nil, &fuse.MknodIn{InHeader: top, Mode: unix.S_IFREG | 0o600}, "file", &out)
		},
	}
	for _, what := range []names.Happening{names.Made, names.Removed, names.Moved} {
		s.repeats.now.Store(&repeat{what: what, dir: other, name: "f", to: other, toName: "g"})
		for name, call := range calls {
			if code := call(); code != errno(unix.ESTALE) {
				t.Errorf("%s while %d is repeated elsewhere: %v, want ESTALE", name, what, code)
			}
		}
	}
	list, err := os.ReadDir(host)
	if err != nil || len(list) != 2 || read(t, host+"/f") != "the host's" {
		t.Errorf("the host's directory was changed: %v, %v", list, err)
	}
	s.repeats.now.Store(nil) // the control: nothing is repeated, so it is somebody's own doing
	if code := calls["unlink"](); code != fuse.OK {
		t.Errorf("unlink: %v", code)
	}
}

// reported is a server of a project, with a file that was looked up, whose events nobody reads but the test: of those
// that repeated returns the server is to repeat each.
func reported(t *testing.T, host, name string) (s *Server, file *nodes.Node, repeated func() []string) {
	t.Helper()
	rules := append(projectRules(), guard.Rule{Pattern: "msgnum", Action: guard.Text})
	s, err := newServer(served.Tree{Dirs: []served.Dir{{Path: "/", Host: host, Kind: served.Guarded,
		Judge: judgeOf(rules...)}}}, Options{Repeat: func(names.Repeat) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.release)
	top, w := s.nodes.Get(nodes.RootID), &s.watches
	w.begun, w.of, w.byWd = true, map[*nodes.Node]*watch{}, map[int32]*watch{}
	if w.fd, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	fd := w.fd
	t.Cleanup(func() { unix.Close(fd) })
	var out fuse.EntryOut
	if code := s.lookupLoop(&fuse.InHeader{NodeId: nodes.RootID}, top, name, &out); code != fuse.OK || w.of[top] == nil {
		t.Fatal(code, "or it is not watched")
	}
	return s, s.nodes.Get(out.NodeId), func() (list []string) {
		buf := make([]byte, inotify.Room)
		n, at, err := w.own.Read(fd, buf)
		if err != nil && err != unix.EAGAIN {
			t.Fatal(err)
		}
		for e := range inotify.Events(buf[:max(n, 0)]) {
			if !w.own.Take(top, e.Name, e.Mask, at+uint64(e.End)) {
				list = append(list, fmt.Sprintf("%#x %s", e.Mask, e.Name))
			}
		}
		return list
	}
}

// TestRepeatSave: the kernel releases a file after close(2) has returned, and so perhaps while the file is renamed.
// Whoever watches inside has heard of that close.
func TestRepeatSave(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	made, err := os.Create(host + "/new")
	if err != nil {
		t.Fatal(err)
	}
	s, file, repeated := reported(t, host, "new")
	released := s.expectAt(file, unix.IN_CLOSE_WRITE)
	in := &fuse.RenameIn{InHeader: fuse.InHeader{NodeId: nodes.RootID}, Newdir: nodes.RootID}
	if code := s.Rename(nil, in, "new", "f"); code != fuse.OK {
		t.Fatal(code)
	}
	made.Close()
	released()
	if list := repeated(); list != nil {
		t.Errorf("what was done inside is repeated there: %q", list)
	}
	// The control: a close outside.
	write(t, host+"/f", "1")
	want := fmt.Sprintf("%#x f", unix.IN_CLOSE_WRITE)
	if list := repeated(); len(list) == 0 || list[len(list)-1] != want {
		t.Errorf("what was done outside is repeated as %q", list)
	}
}

// TestRepeatText: whoever watches inside has heard of what is written there to a file whose contents count, too.
func TestRepeatText(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	write(t, host+"/msgnum", "")
	s, file, repeated := reported(t, host, "msgnum")
	fh := opened(t, s, file, unix.O_WRONLY, host+"/msgnum")
	if n, code := s.Write(nil, &fuse.WriteIn{Fh: fh}, []byte("1\n")); n != 2 || code != fuse.OK {
		t.Fatal(n, code)
	}
	if list := repeated(); list != nil {
		t.Errorf("what was written inside is repeated there: %q", list)
	}
	write(t, host+"/msgnum", "2\n") // the control
	if list := repeated(); len(list) == 0 {
		t.Error("what was written outside is not repeated")
	}
}
