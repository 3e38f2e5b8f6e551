package gatefs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/gate/fuse"
)

// TestRepeatOldNews: by the time that the server hears that a name has gone or was replaced, what has it may have been
// made since. That one is not repeated to have gone: a directory would be dead for everybody inside.
func TestRepeatOldNews(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	dir := Dir{Path: "/", Host: host, Kind: Guarded, Judge: judgeOf(projectRules()...)}
	s, err := newServer(Tree{Dirs: []Dir{dir}}, Options{Repeat: func(Repeat) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.release()
	s.repeats.begun = true // nobody repeats, and nothing is told but by this test
	s.watches.begun, s.watches.fd, s.watches.of = true, -1, map[*node]*watch{}
	top := s.nodes.get(rootID)
	known := func() *node {
		var out fuse.EntryOut
		if code := s.lookupLoop(&fuse.InHeader{NodeId: rootID}, top, "d", &out); code != fuse.OK {
			t.Fatal(code)
		}
		return s.nodes.get(out.NodeId)
	}
	if err := os.Mkdir(host+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	d := known()
	last := func(mask uint32) (r repeat) {
		s.repeats.list = nil
		s.repeats.add(s, top, event{mask: mask | unix.IN_ISDIR, name: "d"}, d)
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
	if r := last(unix.IN_DELETE); r.what != Removed || r.node != d {
		t.Error("who watches a directory that has gone does not hear of it")
	}
	if err := os.Mkdir(host+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	if r := last(unix.IN_MOVED_TO); r.what != Moved || r.instead != d {
		t.Error("who watches a directory that was replaced does not hear of it")
	}
}
