//go:build linux

package points

import (
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
)

// host is a server that has no names, and counts what it is asked to make.
type host struct {
	fuse.FileSystem
	made []string
	no   fuse.Status
	held int // references that were not given back
}

func (h *host) Lookup(<-chan struct{}, *fuse.InHeader, string, *fuse.EntryOut) fuse.Status {
	return fuse.ENOENT
}
func (h *host) Forget(_, n uint64) { h.held -= int(n) }
func (h *host) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if h.no == fuse.OK {
		h.made, out.NodeId = append(h.made, name), 10+uint64(len(h.made))
		h.held++
	}
	return h.no
}

const builder, other = 7, 8

func header(pid uint32, dir uint64) fuse.InHeader {
	return fuse.InHeader{NodeId: dir, Caller: fuse.Caller{Pid: pid}}
}

func TestPoints(t *testing.T) {
	behind := &host{}
	fs := Before(1000, 1000, func(pid uint32) bool { return pid == builder })(behind).(*FS)
	mkdir := func(pid uint32, dir uint64, name string) (uint64, fuse.Status) {
		var out fuse.EntryOut
		code := fs.Mkdir(nil, &fuse.MkdirIn{InHeader: header(pid, dir)}, name, &out)
		return out.NodeId, code
	}
	a, code := mkdir(builder, 1, "a")
	if code != fuse.OK || !is(a) {
		t.Fatalf("a builder's directory: %d, %v", a, code)
	}
	b, code := mkdir(builder, a, "b")
	if code != fuse.OK || len(behind.made) != 0 {
		t.Fatalf("one in it: %v, the server made %q", code, behind.made)
	}
	// control: nobody else's is one
	if id, code := mkdir(other, 1, "c"); code != fuse.OK || is(id) || len(behind.made) != 1 {
		t.Errorf("another's directory: %d, %v, the server made %q", id, code, behind.made)
	}
	if code, _ := fs.remove(&fuse.InHeader{NodeId: 1}, "a", true); code != enotempty {
		t.Errorf("removing one with another in it: %v", code)
	}
	// who writes below has both made, if the server lets him
	behind.no = fuse.EROFS
	if _, code := mkdir(other, b, "d"); code != fuse.EROFS {
		t.Errorf("writing where the server refuses: %v", code)
	}
	behind.no, behind.made, behind.held = fuse.OK, nil, 0
	if _, code := mkdir(other, b, "d"); code != again || len(behind.made) != 2 || behind.held != 0 {
		t.Errorf("writing: %v, the server made %q, and %d references are held", code, behind.made, behind.held)
	}
	var out fuse.EntryOut
	if h := header(other, 1); fs.Lookup(nil, &h, "a", &out) != fuse.ENOENT {
		t.Error("it still stands before what was made")
	}
	fs.Forget(a, 1)
	fs.Forget(b, 1)
	if len(fs.byID) != 0 || len(fs.at) != 0 {
		t.Errorf("%d points are left when the kernel has forgotten them", len(fs.byID))
	}
	if fs.attr(&point{typ: unix.S_IFREG}).Size != 0 {
		t.Error("a point is not empty")
	}
}
