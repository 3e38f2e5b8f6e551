//go:build linux

package inotify

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// What the kernel reports of a directory is read as it happened.
func TestEvents(t *testing.T) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	dir := t.TempDir()
	wd, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_DELETE_SELF)
	if err != nil {
		t.Fatal(err)
	}
	a, b := dir+"/a", dir+"/a longer name than fits beside it"
	for _, err := range []error{os.WriteFile(a, nil, 0o600), os.Rename(a, b), os.Remove(b), os.Remove(dir)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, Room)
	n, err := unix.Read(fd, buf)
	if err != nil {
		t.Fatal(err)
	}
	var masks []uint32
	var names []string
	end := 0
	for e := range Events(buf[:n]) {
		if int(e.Watch) != wd || e.End <= end {
			t.Errorf("event %+v of watch %d behind %d", e, wd, end)
		}
		masks, names, end = append(masks, e.Mask), append(names, e.Name), e.End
	}
	wantMasks := []uint32{unix.IN_CREATE, unix.IN_MOVED_FROM, unix.IN_MOVED_TO, unix.IN_DELETE_SELF, unix.IN_IGNORED}
	if !slices.Equal(masks, wantMasks) || !slices.Equal(names, []string{"a", "a", b[len(dir)+1:], "", ""}) || end != n {
		t.Errorf("%#x of %q up to %d of %d", masks, names, end, n)
	}
	for e := range Events(buf[:n-1]) {
		if end = e.End; end == n {
			t.Error("an event that is not there whole was read")
		}
	}
}

func TestExpected(t *testing.T) {
	var x Expected[int]
	masks := []uint32{1, 2}
	if x.Take(7, "f", 1, 0) {
		t.Error("nothing was expected")
	}
	x.Begin(7, "f", masks)
	for _, other := range []bool{x.Take(8, "f", 1, 0), x.Take(7, "g", 1, 0), x.Take(7, "f", 4, 0)} {
		if other {
			t.Error("another's event was taken")
		}
	}
	if !x.Take(7, "f", 1, 900) || x.Take(7, "f", 1, 901) {
		t.Error("one event of each kind is expected while it is done, wherever it stands")
	}
	x.End(7, "f", masks, 100)
	if x.Take(7, "f", 2, 101) || !x.Take(7, "f", 2, 100) {
		t.Error("what stands behind the last is somebody else's")
	}
	x.Begin(7, "f", masks)
	x.Begin(7, "g", masks)
	x.End(7, "f", masks, 200)
	x.Forget()
	if x.Take(7, "f", 1, 150) || !x.Take(7, "g", 1, 150) {
		t.Error("what is done is forgotten, what is being done is not")
	}
}
