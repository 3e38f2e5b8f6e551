//go:build linux

package fuse

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's sizes (linux/fuse.h), less or with the 40 bytes of the header that begins every request here.
func TestLayoutIsTheKernels(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"in_header", unsafe.Sizeof(InHeader{}), 40}, {"out_header", unsafe.Sizeof(outHeader{}), 16},
		{"attr", unsafe.Sizeof(Attr{}), 88}, {"entry_out", unsafe.Sizeof(EntryOut{}), 128},
		{"attr_out", unsafe.Sizeof(AttrOut{}), 104},
		{"open_out", unsafe.Sizeof(OpenOut{}), 16}, {"create", unsafe.Sizeof(CreateOut{}), 144},
		{"kstatfs", unsafe.Sizeof(StatfsOut{}), 80},
		{"init_out", unsafe.Sizeof(initOut{}), 64}, {"dirent", unsafe.Sizeof(dirent{}), 24}, {"notify_inval_entry_out",
			unsafe.Sizeof(invalEntryOut{}), 16},
		{"notify_inval_inode_out", unsafe.Sizeof(invalInodeOut{}), 24},
		{"getattr_in", unsafe.Sizeof(GetAttrIn{}), 40 + 16}, {"setattr_in", unsafe.Sizeof(SetAttrIn{}), 40 + 88},
		{"mkdir_in", unsafe.Sizeof(MkdirIn{}), 40 + 8},
		{"mknod_in", unsafe.Sizeof(MknodIn{}), 40 + 16}, {"rename2_in", unsafe.Sizeof(RenameIn{}), 40 + 16},
		{"open_in", unsafe.Sizeof(OpenIn{}), 40 + 8},
		{"create_in", unsafe.Sizeof(CreateIn{}), 40 + 16}, {"release_in", unsafe.Sizeof(ReleaseIn{}), 40 + 24},
		{"flush_in", unsafe.Sizeof(FlushIn{}), 40 + 24},
		{"lk_in", unsafe.Sizeof(LkIn{}), 40 + 48}, {"lk_out", unsafe.Sizeof(LkOut{}), 24},
		{"read_in", unsafe.Sizeof(ReadIn{}), 40 + 40}, {"write_in", unsafe.Sizeof(WriteIn{}), 40 + 40},
		{"fsync_in", unsafe.Sizeof(FsyncIn{}), 40 + 16},
		{"fallocate_in", unsafe.Sizeof(FallocateIn{}), 40 + 32}, {"lseek_in", unsafe.Sizeof(LseekIn{}), 40 + 24},
		{"copy_file_range_in", unsafe.Sizeof(CopyFileRangeIn{}), 40 + 56},
		{"access_in", unsafe.Sizeof(AccessIn{}), 40 + 8}, {"setxattr_in", unsafe.Sizeof(SetXAttrIn{}), 40 + 8},
		{"batch_forget_in", unsafe.Sizeof(batchForgetIn{}), 40 + 8},
	} {
		if c.got != c.want {
			t.Errorf("struct fuse_%s has %d bytes here, %d in the kernel", c.name, c.got, c.want)
		}
	}
}

// A request that ends before its structure or its name does is refused, whatever its operation.
func TestShortRequestsAreRefused(t *testing.T) {
	s := &Server{}
	for op := uint32(1); op < 60; op++ {
		for n := headerSize; n < headerSize+90; n++ {
			r := newRequest()
			r.in = r.short[:n]
			for i := range r.in {
				r.in[i] = 0xff // no NUL anywhere, no size that fits
			}
			*r.header() = InHeader{Opcode: op}
			a := s.try(r) // s.fs is nil: whatever reaches it panics, which is EIO too
			if !a.silent && a.code != EIO && a.code != ENOSYS && op != opDestroy && op != opInterrupt {
				t.Fatalf("operation %d with %d bytes: %v", op, n, a.code)
			}
		}
	}
}

// nobody answers nothing: what reaches it panics, which is EIO.
type nobody struct{ FileSystem }

// TestOnlyOneUserIsServed: where others have the server's user namespace, too, they open and change nothing. The
// control is the same by the user himself, and a server for everybody.
func TestOnlyOneUserIsServed(t *testing.T) {
	own := uint32(1000)
	for op := uint32(1); op < 60; op++ {
		ask := func(only *uint32, uid uint32) Status {
			s := &Server{fs: nobody{}, only: only}
			r := newRequest()
			r.in = r.short
			clear(r.in)
			*r.header() = InHeader{Opcode: op, Caller: Caller{Owner: Owner{Uid: uid, Gid: own}, Pid: 7}}
			return s.try(r).code
		}
		if a, b := ask(&own, own), ask(nil, 0); a == EACCES || b == EACCES {
			t.Errorf("operation %d: the user himself %v, anybody where all are served %v", op, a, b)
		}
		for _, uid := range []uint32{0, 5, 65534} {
			if got := ask(&own, uid); (got == EACCES) == anybodys(op) {
				t.Errorf("operation %d by %d: %v", op, uid, got)
			}
		}
	}
	for _, op := range []uint32{opSetattr, opSymlink, opMknod, opMkdir, opUnlink, opRmdir, opRename, opRename2,
		opLink, opOpen, opOpendir, opCreate, opAccess, opGetxattr, opListxattr, opSetxattr, opRemovexattr} {
		if anybodys(op) {
			t.Errorf("operation %d is everybody's", op)
		}
	}
}

func TestInterruptReachesTheRequest(t *testing.T) {
	s := &Server{}
	r := newRequest()
	r.in = r.short
	r.header().Unique = 7
	if c := s.interrupt(7); c != EAGAIN {
		t.Errorf("nobody works on it: %v", c)
	}
	s.begin(r)
	if c := s.interrupt(7); c != OK {
		t.Errorf("interrupt: %v", c)
	}
	select {
	case <-r.cancel:
	default:
		t.Error("the request was not told")
	}
	_ = s.interrupt(7) // twice is once
	s.end(r)
	s.begin(r)
	select {
	case <-r.cancel:
		t.Error("the next request was told too")
	default:
	}
}

// asking is a file system whose lookups wait until they are told, as those do that a person is asked about.
type asking struct {
	FileSystem
	waiting sync.WaitGroup
	answer  chan struct{}
}

func (a *asking) Init(*Server) {}
func (a *asking) OnUnmount()   {}
func (a *asking) Lookup(<-chan struct{}, *InHeader, string, *EntryOut) Status {
	a.waiting.Done()
	<-a.answer
	return ENOENT
}

// asBytes is what the kernel would send.
func asBytes[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// A hundred lookups that wait do not hold a hundred buffers of the longest write's size.
func TestWaitingRequestsKeepNoBuffer(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	kernel := fds[1]
	request := func(op uint32, body []byte) {
		h := InHeader{Opcode: op, Length: uint32(headerSize + len(body))}
		if _, err := unix.Write(kernel, append(bytes.Clone(asBytes(&h)), body...)); err != nil {
			t.Fatal(err)
		}
	}
	hello := initIn{major: 7, minor: 34}
	request(opInit, asBytes(&hello)[headerSize:])
	fs := &asking{answer: make(chan struct{})}
	s, err := New(fds[0], fs, nil)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	go func() { defer close(served); s.Serve() }()
	const crowd = 100
	fs.waiting.Add(crowd)
	for range crowd {
		request(opLookup, []byte("name\x00"))
	}
	fs.waiting.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > crowd*(maxWrite/8) {
		t.Errorf("%d waiting requests hold %d kB", crowd, held>>10)
	}
	close(fs.answer)
	unix.Close(kernel)
	<-served
}

func TestStatusOfErrors(t *testing.T) {
	if ToStatus(nil) != OK || ToStatus(unix.EPERM) != EPERM || ToStatus(&wrapped{unix.EROFS}) != EROFS ||
		ToStatus(&wrapped{}) != EIO {
		t.Error("an errno is lost")
	}
}

type wrapped struct{ err error }

func (w *wrapped) Error() string { return "wrapped" }
func (w *wrapped) Unwrap() error { return w.err }
