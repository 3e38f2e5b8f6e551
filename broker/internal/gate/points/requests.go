//go:build linux

package points

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
)

// The requests of the kernel: about points they are answered here, about all else by the server behind.

func (f *FS) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	switch p := f.find(h.NodeId, name); {
	case p != nil:
		return f.enter(p, out)
	case is(h.NodeId):
		return fuse.ENOENT
	}
	return f.FileSystem.Lookup(cancel, h, name, out)
}

func (f *FS) Forget(id, count uint64) {
	if !is(id) {
		f.FileSystem.Forget(id, count)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.byID[id]
	if p == nil {
		return
	}
	if p.looks -= min(count, p.looks); p.looks == 0 {
		delete(f.byID, id)
		if f.at[p.place] == p {
			delete(f.at, p.place)
		}
	}
}

func (f *FS) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if !is(in.NodeId) {
		return f.FileSystem.GetAttr(cancel, in, out)
	}
	p := f.of(in.NodeId)
	if p == nil {
		return again
	}
	out.Attr = f.attr(p)
	out.SetTimeout(valid)
	return fuse.OK
}

func (f *FS) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if is(in.NodeId) {
		return f.yield(cancel, &in.InHeader, in.NodeId)
	}
	return f.FileSystem.SetAttr(cancel, in, out)
}

func (f *FS) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	if is(in.NodeId) {
		return fuse.OK
	}
	return f.FileSystem.Access(cancel, in)
}

func (f *FS) StatFs(cancel <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	at := *h
	if is(at.NodeId) {
		at.NodeId = fuse.FUSE_ROOT_ID
	}
	return f.FileSystem.StatFs(cancel, &at, out)
}

func (f *FS) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	if in.Mode&unix.S_IFMT == unix.S_IFREG {
		if code, done := f.make(cancel, &in.InHeader, name, unix.S_IFREG, out); done {
			return code
		}
	}
	if is(in.NodeId) {
		return f.yield(cancel, &in.InHeader, in.NodeId)
	}
	return f.FileSystem.Mknod(cancel, in, name, out)
}

func (f *FS) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if code, done := f.make(cancel, &in.InHeader, name, unix.S_IFDIR, out); done {
		return code
	}
	if is(in.NodeId) {
		return f.yield(cancel, &in.InHeader, in.NodeId)
	}
	return f.FileSystem.Mkdir(cancel, in, name, out)
}

// Create gives whoever makes a point a file that takes nothing.
func (f *FS) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if code, done := f.make(cancel, &in.InHeader, name, unix.S_IFREG, &out.EntryOut); done {
		return code
	}
	if is(in.NodeId) {
		return f.yield(cancel, &in.InHeader, in.NodeId)
	}
	return f.FileSystem.Create(cancel, in, name, out)
}

func (f *FS) Symlink(cancel <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	if is(h.NodeId) {
		return f.yield(cancel, h, h.NodeId)
	}
	return f.FileSystem.Symlink(cancel, h, target, name, out)
}

func (f *FS) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	for _, id := range [...]uint64{in.NodeId, in.Oldnodeid} {
		if is(id) {
			return f.yield(cancel, &in.InHeader, id)
		}
	}
	return f.FileSystem.Link(cancel, in, name, out)
}

func (f *FS) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	if is(h.NodeId) {
		return nil, fuse.EINVAL
	}
	return f.FileSystem.Readlink(cancel, h)
}

func (f *FS) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if code, done := f.remove(h, name, false); done {
		return code
	}
	return f.FileSystem.Unlink(cancel, h, name)
}

func (f *FS) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if code, done := f.remove(h, name, true); done {
		return code
	}
	return f.FileSystem.Rmdir(cancel, h, name)
}

// Rename moves no point, and nothing into one. Over one it moves what may have that name.
func (f *FS) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	for _, id := range [...]uint64{in.NodeId, in.Newdir} {
		if is(id) {
			return f.yield(cancel, &in.InHeader, id)
		}
	}
	if p := f.find(in.NodeId, oldName); p != nil {
		return f.yield(cancel, &in.InHeader, p.id)
	}
	code := f.FileSystem.Rename(cancel, in, oldName, newName)
	if p := f.find(in.Newdir, newName); p != nil && code == fuse.OK {
		f.drop(p)
	}
	return code
}

func (f *FS) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	switch {
	case !is(in.NodeId):
		return f.FileSystem.Open(cancel, in, out)
	case in.Flags&unix.O_ACCMODE != unix.O_RDONLY || in.Flags&unix.O_TRUNC != 0:
		return f.yield(cancel, &in.InHeader, in.NodeId)
	}
	return fuse.OK
}

func (f *FS) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if is(in.NodeId) {
		return fuse.ReadResult{}, fuse.OK
	}
	return f.FileSystem.Read(cancel, in, buf)
}

func (f *FS) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if is(in.NodeId) {
		return 0, fuse.EROFS
	}
	return f.FileSystem.Write(cancel, in, data)
}

func (f *FS) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	if is(in.NodeId) {
		return fuse.Status(unix.ENXIO)
	}
	return f.FileSystem.Lseek(cancel, in, out)
}

func (f *FS) CopyFileRange(cancel <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	if is(in.NodeId) || is(in.NodeIdOut) {
		return 0, fuse.EXDEV
	}
	return f.FileSystem.CopyFileRange(cancel, in)
}

func (f *FS) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if is(in.NodeId) {
		return fuse.EROFS
	}
	return f.FileSystem.Fallocate(cancel, in)
}

func (f *FS) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	if is(in.NodeId) {
		return fuse.OK
	}
	return f.FileSystem.Flush(cancel, in)
}

func (f *FS) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	if is(in.NodeId) {
		return fuse.Status(unix.ENOLCK)
	}
	return f.FileSystem.GetLk(cancel, in, out)
}

func (f *FS) SetLk(cancel <-chan struct{}, in *fuse.LkIn, wait bool) fuse.Status {
	if is(in.NodeId) {
		return fuse.Status(unix.ENOLCK)
	}
	return f.FileSystem.SetLk(cancel, in, wait)
}

func (f *FS) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if is(in.NodeId) {
		return fuse.OK
	}
	return f.FileSystem.Fsync(cancel, in)
}

func (f *FS) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	if !is(in.NodeId) {
		f.FileSystem.Release(cancel, in)
	}
}

func (f *FS) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if is(in.NodeId) {
		return fuse.OK
	}
	return f.FileSystem.OpenDir(cancel, in, out)
}

func (f *FS) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if is(in.NodeId) {
		return list(in, func(e fuse.DirEntry) { out.AddDirEntry(e) })
	}
	return f.FileSystem.ReadDir(cancel, in, out)
}

func (f *FS) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if is(in.NodeId) {
		return list(in, func(e fuse.DirEntry) { out.AddDirLookupEntry(e) })
	}
	return f.FileSystem.ReadDirPlus(cancel, in, out)
}

func list(in *fuse.ReadIn, add func(fuse.DirEntry)) fuse.Status {
	for i, name := range [...]string{".", ".."} {
		if in.Offset <= uint64(i) {
			add(fuse.DirEntry{Name: name, Mode: unix.S_IFDIR, Ino: in.NodeId, Off: uint64(i) + 1})
		}
	}
	return fuse.OK
}

func (f *FS) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if is(in.NodeId) {
		return fuse.OK
	}
	return f.FileSystem.FsyncDir(cancel, in)
}

func (f *FS) ReleaseDir(in *fuse.ReleaseIn) {
	if !is(in.NodeId) {
		f.FileSystem.ReleaseDir(in)
	}
}

func (f *FS) GetXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if is(h.NodeId) {
		return 0, fuse.ENODATA
	}
	return f.FileSystem.GetXAttr(cancel, h, name, dest)
}

func (f *FS) ListXAttr(cancel <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	if is(h.NodeId) {
		return 0, fuse.OK
	}
	return f.FileSystem.ListXAttr(cancel, h, dest)
}

func (f *FS) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	if is(in.NodeId) {
		return f.yield(cancel, &in.InHeader, in.NodeId)
	}
	return f.FileSystem.SetXAttr(cancel, in, name, data)
}

func (f *FS) RemoveXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if is(h.NodeId) {
		return fuse.ENODATA
	}
	return f.FileSystem.RemoveXAttr(cancel, h, name)
}
