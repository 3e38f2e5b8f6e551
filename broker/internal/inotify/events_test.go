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

// TestExpectedRename: what is expected of a file that is renamed meanwhile comes with either name, as often as it is
// expected.
func TestExpectedRename(t *testing.T) {
	closed, moved := []uint32{8}, []uint32{8, 2}
	for name, begin := range map[string]func(x *Expected[int]){
		"before":    func(x *Expected[int]) { x.Begin(1, "old", closed); x.Same(1, "old", 2, "new", moved) },
		"meanwhile": func(x *Expected[int]) { x.Same(1, "old", 2, "new", moved); x.Begin(1, "old", closed) },
		"new name":  func(x *Expected[int]) { x.Begin(2, "new", closed); x.Same(1, "old", 2, "new", moved) },
		"once more": func(x *Expected[int]) {
			x.Same(1, "old", 3, "x", moved)
			x.Begin(1, "old", closed)
			x.Same(3, "x", 2, "new", moved)
		},
		"and back": func(x *Expected[int]) {
			x.Same(2, "new", 1, "old", moved)
			x.Begin(1, "old", closed)
			x.Same(1, "old", 2, "new", moved)
		},
		"both names": func(x *Expected[int]) { x.Same(2, "new", 2, "new", moved); x.Begin(2, "new", closed) },
	} {
		for _, comes := range []kind[int]{{1, "old", 8}, {2, "new", 8}} {
			var x Expected[int]
			begin(&x)
			if name == "both names" {
				comes = kind[int]{2, "new", 8}
			}
			if !x.Has(comes.dir, comes.name, []uint32{4, 8}) || x.Has(comes.dir, comes.name, []uint32{4}) {
				t.Errorf("%s: %v is not known to be expected", name, comes)
			}
			if !x.Take(comes.dir, comes.name, 8, 100) {
				t.Errorf("%s: %v was not expected", name, comes)
			}
			if x.Take(1, "old", 8, 100) || x.Take(2, "new", 8, 100) || x.Take(2, "new", 2, 100) {
				t.Errorf("%s: more was expected than is done", name)
			}
		}
	}
	var x Expected[int]
	x.Begin(2, "new", closed)
	x.Same(1, "old", 2, "new", moved)
	x.End(2, "new", closed, 100)
	x.Forget()
	if !x.Take(2, "new", 8, 90) {
		t.Error("what a rename may still change was forgotten")
	}
	x.End(1, "old", moved, 200)
	if x.Forget(); x.Has(1, "old", moved) || x.Has(2, "new", moved) {
		t.Error("what is done is not forgotten")
	}
}
