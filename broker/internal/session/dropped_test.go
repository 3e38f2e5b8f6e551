//go:build linux

package session

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What is thrown away loses its name before anything in it: half of one, after a kill, would say that the program had
// deleted the rest.
func TestDroppedLosesItsNameFirst(t *testing.T) {
	for name, c := range map[string]struct {
		remove func(s *Session) error
		moved  string // what loses its name, and what is left of the session
		left   []string
	}{
		"layers that were kept": {func(s *Session) error { return DropLayers(s.Dir) }, "overlay",
			[]string{"ended/log.jsonl"}},
		"layers at a session's end": {func(s *Session) error { return s.Close(false) }, "overlay",
			[]string{"ended/kept", "ended/log.jsonl"}},
		"the whole session": {func(s *Session) error { return Remove(s.Dir) }, "ended", nil},
	} {
		t.Run(name, func(t *testing.T) {
			root, s := folderWith(t, "overlay/1/upper/f", dropped+"/1/f", "kept", "log.jsonl") // one of a call that was killed
			var buf [4096]byte
			n, err := unix.Read(watched(t, map[string]uint32{root: unix.IN_MOVED_FROM, s.Dir: unix.IN_MOVED_FROM,
				s.Dir + "/overlay/1/upper": unix.IN_DELETE | unix.IN_ATTRIB}, func() error { return c.remove(s) }), buf[:])
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for at := 0; at < n; {
				size := int(binary.NativeEndian.Uint32(buf[at+12:])) // of the name that follows, see inotify(7)
				if name := strings.TrimRight(string(buf[at+16:at+16+size]), "\x00"); name != "" {
					names = append(names, name)
				}
				at += 16 + size
			}
			if got := strings.Join(names, " "); got != c.moved+" f" {
				t.Errorf("what changed, in order: %q", got)
			}
			left, _ := filepath.Glob(root + "/*/*")
			for i := range left {
				left[i] = strings.TrimPrefix(left[i], root+"/")
			}
			if hidden, _ := filepath.Glob(root + "/.*"); !slices.Equal(left, c.left) || hidden != nil {
				t.Errorf("%q is left, and %q; want %q", left, hidden, c.left)
			}
		})
	}
}

// folderWith makes a session's folder with files in it, whose broker has been killed.
func folderWith(t *testing.T, files ...string) (root string, s *Session) {
	t.Helper()
	root = t.TempDir()
	s, err := Create(root, "ended")
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(s.lock) // as the kernel does when a broker is killed
	s.lock = -1
	for _, f := range files {
		p := filepath.Join(s.Dir, f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root, s
}

// watched returns what inotify reports of paths while f runs.
func watched(t *testing.T, paths map[string]uint32, f func() error) int {
	t.Helper()
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(events) })
	for p, mask := range paths {
		if _, err := unix.InotifyAddWatch(events, p, mask); err != nil {
			t.Fatal(err)
		}
	}
	if err := f(); err != nil {
		t.Fatal(err)
	}
	return events
}

// What is left of a call that was killed, at whatever moment, is removed with the rest that nobody needs.
func TestSweepRemovesWhatWasDropped(t *testing.T) {
	root, s := folderWith(t, dropped+"/1/upper/f", "overlay/1/upper/f", "kept", "log.jsonl")
	half := filepath.Join(root, removed+"abcdef")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if !Stale(s.Dir) || !Stale(half) {
		t.Error("nobody is told that there is something to remove")
	}
	Sweep(root)
	if exists(filepath.Join(s.Dir, dropped)) || exists(half) || !exists(filepath.Join(s.Dir, "overlay/1/upper/f")) {
		t.Error("what was dropped is left, or what is kept is gone")
	}
	if Stale(s.Dir) {
		t.Error("what is kept counts as something to remove")
	}
	if err := os.Remove(filepath.Join(s.Dir, "kept")); err != nil { // the first step of DropLayers
		t.Fatal(err)
	}
	if Sweep(root); exists(filepath.Join(s.Dir, "overlay")) || !exists(filepath.Join(s.Dir, "log.jsonl")) {
		t.Error("layers that nobody keeps are left, or the record is gone")
	}
}
