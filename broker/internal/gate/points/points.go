//go:build linux

package points

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
)

// FS is a file system with mount points that are empty files and directories. They can be looked up, and are not
// listed. Who wants to write to one that is nobody's mount has it made by the server behind, if that lets him.
type FS struct {
	fuse.FileSystem
	builds func(pid uint32) bool // whether a process is building a sandbox
	owner  fuse.Owner
	now    time.Time

	mu   sync.Mutex
	last uint64
	byID map[uint64]*point
	at   map[place]*point
}

// place is a name in a directory.
type place struct {
	dir  uint64
	name string
}

type point struct {
	place
	id    uint64
	typ   uint32
	looks uint64 // references the kernel holds
}

// maxPoints bounds how many a program can have this process keep.
const maxPoints = 4096

// ours marks the numbers of points: the server's own are small, or have the bit above set.
const ours = 1 << 62

func is(id uint64) bool { return id>>62 == 1 }

// Before puts points before a file system. What it shows belongs to uid and gid.
func Before(uid, gid uint32, builds func(pid uint32) bool) func(fuse.FileSystem) fuse.FileSystem {
	return func(behind fuse.FileSystem) fuse.FileSystem {
		return &FS{FileSystem: behind, builds: builds, owner: fuse.Owner{Uid: uid, Gid: gid}, now: time.Now(),
			byID: map[uint64]*point{}, at: map[place]*point{}}
	}
}

const (
	eexist, eisdir, enotempty = fuse.Status(unix.EEXIST), fuse.Status(unix.EISDIR), fuse.Status(unix.ENOTEMPTY)
	// the kernel walks again, and asks for each name
	again = fuse.Status(unix.ESTALE)
	// A point changes through the kernel alone. One that may be forgotten could be lost before it is mounted on.
	valid = 365 * 24 * time.Hour
)

func (f *FS) find(dir uint64, name string) *point {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at[place{dir, name}]
}

func (f *FS) of(id uint64) *point {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byID[id]
}

func (f *FS) drop(p *point) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at[p.place] == p {
		delete(f.at, p.place)
	}
}

func (f *FS) attr(p *point) fuse.Attr {
	sec := uint64(f.now.Unix())
	a := fuse.Attr{Ino: p.id, Atime: sec, Mtime: sec, Ctime: sec, Mode: unix.S_IFREG | 0o644, Nlink: 1, Owner: f.owner,
		Blksize: 4096}
	if p.typ == unix.S_IFDIR {
		a.Mode, a.Nlink = unix.S_IFDIR|0o755, 2
	}
	return a
}

// enter describes a point to the kernel.
func (f *FS) enter(p *point, out *fuse.EntryOut) fuse.Status {
	f.mu.Lock()
	p.looks++
	f.mu.Unlock()
	*out = fuse.EntryOut{NodeId: p.id, Attr: f.attr(p)}
	out.SetEntryTimeout(valid)
	out.SetAttrTimeout(valid)
	return fuse.OK
}

// make makes a point for a name that is missing, if it is for mounting; done says that this is the answer.
func (f *FS) make(cancel <-chan struct{}, h *fuse.InHeader, name string, typ uint32,
	out *fuse.EntryOut) (code fuse.Status, done bool) {
	if !f.builds(h.Pid) {
		return fuse.OK, false
	}
	if !is(h.NodeId) {
		var found fuse.EntryOut
		code := f.FileSystem.Lookup(cancel, h, name, &found)
		if code == fuse.OK && found.NodeId != 0 {
			f.FileSystem.Forget(found.NodeId, 1)
		}
		if code != fuse.ENOENT && (code != fuse.OK || found.NodeId != 0) {
			return code, false
		}
	}
	f.mu.Lock()
	at := place{h.NodeId, name}
	if f.at[at] != nil || len(f.byID) >= maxPoints {
		there := f.at[at] != nil
		f.mu.Unlock()
		return eexist, there
	}
	f.last++
	p := &point{place: at, id: ours | f.last, typ: typ}
	f.byID[p.id], f.at[at] = p, p
	f.mu.Unlock()
	return f.enter(p, out), true
}

// yield has the server behind make what a point stands for, because somebody wants to write there.
func (f *FS) yield(cancel <-chan struct{}, h *fuse.InHeader, id uint64) fuse.Status {
	made, code := f.makeBehind(cancel, h, id)
	if code == fuse.OK {
		f.FileSystem.Forget(made, 1)
		code = again
	}
	return code
}

func (f *FS) makeBehind(cancel <-chan struct{}, h *fuse.InHeader, id uint64) (made uint64, code fuse.Status) {
	p := f.of(id)
	if p == nil {
		return 0, again
	}
	at := *h
	if at.NodeId = p.dir; is(p.dir) {
		if at.NodeId, code = f.makeBehind(cancel, h, p.dir); code != fuse.OK {
			return 0, code
		}
		defer f.FileSystem.Forget(at.NodeId, 1)
	}
	var out fuse.EntryOut
	if p.typ == unix.S_IFDIR {
		code = f.FileSystem.Mkdir(cancel, &fuse.MkdirIn{InHeader: at, Mode: 0o755}, p.name, &out)
	} else {
		code = f.FileSystem.Mknod(cancel, &fuse.MknodIn{InHeader: at, Mode: unix.S_IFREG | 0o644}, p.name, &out)
	}
	if code == eexist {
		code = f.FileSystem.Lookup(cancel, &at, p.name, &out)
	}
	if code == fuse.OK {
		f.drop(p)
	}
	return out.NodeId, code
}

// remove takes a point away; done says that the name was one's, or in one.
func (f *FS) remove(h *fuse.InHeader, name string, dir bool) (code fuse.Status, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.at[place{h.NodeId, name}]
	switch {
	case p == nil && is(h.NodeId):
		return fuse.ENOENT, true
	case p == nil:
		return fuse.OK, false
	case dir && p.typ != unix.S_IFDIR:
		return fuse.ENOTDIR, true
	case !dir && p.typ == unix.S_IFDIR:
		return eisdir, true
	}
	for at := range f.at {
		if at.dir == p.id {
			return enotempty, true
		}
	}
	delete(f.at, p.place)
	return fuse.OK, true
}
