//go:build linux

package session

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Layers that are thrown away lose their name before anything in them: half of one, after a kill, would say that the
// program had deleted the rest.
func TestDroppedLayersLoseTheirNameFirst(t *testing.T) {
	dir := t.TempDir()
	upper := filepath.Join(dir, "overlay/1/upper")
	for _, sub := range []string{upper, filepath.Join(dir, dropped, "1")} { // one of a call that was killed
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(upper, "f"), filepath.Join(dir, "kept")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(events)
	for p, mask := range map[string]uint32{dir: unix.IN_MOVED_FROM, upper: unix.IN_DELETE | unix.IN_ATTRIB} {
		if _, err := unix.InotifyAddWatch(events, p, mask); err != nil {
			t.Fatal(err)
		}
	}
	if err := DropLayers(dir); err != nil {
		t.Fatal(err)
	}
	var buf [4096]byte
	n, err := unix.Read(events, buf[:])
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
	if got := strings.Join(names, " "); got != "overlay f" {
		t.Errorf("what changed, in order: %q", got)
	}
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("%s is left", list[0].Name())
	}
}

// What is left of a call that was killed is removed with the rest that nobody needs.
func TestSweepRemovesDroppedLayers(t *testing.T) {
	root := t.TempDir()
	s, err := Create(root, "ended")
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(s.lock) // as the kernel does when a broker is killed
	dir := s.Dir
	for _, sub := range []string{dropped + "/1/upper", "overlay/1/upper"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kept", "log.jsonl"} {
		if err := s.WriteFile(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(root)
	if exists(filepath.Join(dir, dropped)) || !exists(filepath.Join(dir, "overlay/1/upper")) {
		t.Error("what was dropped is left, or what is kept is gone")
	}
}
