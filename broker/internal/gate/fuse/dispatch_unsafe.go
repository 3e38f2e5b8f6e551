//go:build linux

package fuse

import (
	"unsafe"
)

// Operations (linux/fuse.h, enum fuse_opcode). What is not here is answered with ENOSYS, which tells the
// kernel not to ask again or to do without.
const (
	opLookup        = 1
	opForget        = 2
	opGetattr       = 3
	opSetattr       = 4
	opReadlink      = 5
	opSymlink       = 6
	opMknod         = 8
	opMkdir         = 9
	opUnlink        = 10
	opRmdir         = 11
	opRename        = 12
	opLink          = 13
	opOpen          = 14
	opRead          = 15
	opWrite         = 16
	opStatfs        = 17
	opRelease       = 18
	opFsync         = 20
	opSetxattr      = 21
	opGetxattr      = 22
	opListxattr     = 23
	opRemovexattr   = 24
	opFlush         = 25
	opInit          = 26
	opOpendir       = 27
	opReaddir       = 28
	opReleasedir    = 29
	opFsyncdir      = 30
	opGetlk         = 31
	opSetlk         = 32
	opSetlkw        = 33
	opAccess        = 34
	opCreate        = 35
	opInterrupt     = 36
	opDestroy       = 38
	opBatchForget   = 42
	opFallocate     = 43
	opReaddirplus   = 44
	opRename2       = 45
	opLseek         = 46
	opCopyFileRange = 47
)

// result is an answer: a structure of size bytes in the request's out, or data, or nothing at all.
type result struct {
	code   Status
	size   int
	data   []byte
	silent bool
}

// answer has the file system answer r. A file system that panics has failed to.
func (s *Server) answer(r *request) {
	if len(r.in) < headerSize {
		return
	}
	s.begin(r)
	a := s.try(r)
	s.end(r)
	if !a.silent {
		s.send(r, a.code, a.size, a.data)
	}
}

func (s *Server) try(r *request) (a result) {
	defer func() {
		if recover() != nil {
			a = result{code: EIO, silent: r.isForget()}
		}
	}()
	h := r.header()
	if h.extensions != 0 { // none were offered
		return result{code: EIO}
	}
	if s.only != nil && h.Uid != *s.only && !anybodys(h.Opcode) {
		return result{code: EACCES}
	}
	if keepsOpen(h.Opcode) && s.crowded() {
		return result{code: EMFILE}
	}
	switch h.Opcode {
	case opForget, opBatchForget:
		s.forget(r)
		return result{silent: true}
	case opInterrupt:
		in, _ := as[interruptIn](r)
		if in == nil {
			return result{code: EIO}
		}
		code := s.interrupt(in.unique)
		return result{code: code, silent: code == OK}
	case opDestroy:
		return result{}
	case opLookup, opSymlink, opMknod, opMkdir, opUnlink, opRmdir, opRename, opRename2, opLink, opReadlink:
		return s.names(r)
	case opGetxattr, opListxattr, opSetxattr, opRemovexattr:
		return s.xattrs(r)
	case opOpendir, opReaddir, opReaddirplus, opFsyncdir, opReleasedir:
		return s.dirs(r)
	}
	return s.files(r)
}

// keepsOpen says whether an operation takes a descriptor of this process for as long as a program likes.
func keepsOpen(op uint32) bool {
	return op == opOpen || op == opOpendir || op == opCreate || op == opMkdir
}

// anybodys says whether an operation is every user's: to find a name and look at it, which the kernel also does by what
// it knows already, and to use what somebody has opened, who may have handed it on. The kernel sends some of these as
// nobody in particular. A name that is not found loses what is mounted on it, so that nobody may be refused that.
func anybodys(op uint32) bool {
	switch op {
	case opLookup, opGetattr, opReadlink, opStatfs, opForget, opBatchForget, opInterrupt, opDestroy,
		opRead, opWrite, opLseek, opFallocate, opCopyFileRange, opFlush, opFsync, opRelease, opGetlk, opSetlk, opSetlkw,
		opReaddir, opReaddirplus, opFsyncdir, opReleasedir:
		return true
	}
	return false
}

func (s *Server) forget(r *request) {
	if r.header().Opcode == opForget {
		if in, _ := as[forgetIn](r); in != nil {
			s.fs.Forget(in.NodeId, in.nlookup)
		}
		return
	}
	if in, rest := as[batchForgetIn](r); in != nil {
		for _, f := range forgets(rest, in.count) {
			s.fs.Forget(f.nodeID, f.nlookup)
		}
	}
}

// call has f answer with a structure; a request that is too short for its type is EIO.
func call[In, Out any](r *request, f func(*In, []byte, *Out) Status) result {
	in, rest := as[In](r)
	if in == nil {
		return result{code: EIO}
	}
	out := reply[Out](r)
	return result{code: f(in, rest, out), size: int(unsafe.Sizeof(*out))}
}

// none is the structure of answers that have none.
type none struct{}

// named is call for requests that end in a name.
func named[In, Out any](r *request, f func(*In, string, *Out) Status) result {
	return call(r, func(in *In, rest []byte, out *Out) Status {
		name, _, ok := text(rest)
		if !ok {
			return EIO
		}
		return f(in, name, out)
	})
}

func (s *Server) names(r *request) result {
	c, fs := r.cancel, s.fs
	switch r.header().Opcode {
	case opLookup:
		return named(r, func(in *InHeader, name string, out *EntryOut) Status { return fs.Lookup(c, in, name, out) })
	case opMknod:
		return named(r, func(in *MknodIn, name string, out *EntryOut) Status { return fs.Mknod(c, in, name, out) })
	case opMkdir:
		return named(r, func(in *MkdirIn, name string, out *EntryOut) Status { return fs.Mkdir(c, in, name, out) })
	case opLink:
		return named(r, func(in *LinkIn, name string, out *EntryOut) Status { return fs.Link(c, in, name, out) })
	case opUnlink:
		return named(r, func(in *InHeader, name string, _ *none) Status { return fs.Unlink(c, in, name) })
	case opRmdir:
		return named(r, func(in *InHeader, name string, _ *none) Status { return fs.Rmdir(c, in, name) })
	case opSymlink:
		return call(r, func(in *InHeader, rest []byte, out *EntryOut) Status {
			name, rest, ok := text(rest)
			target, _, ok2 := text(rest)
			if !ok || !ok2 {
				return EIO
			}
			return fs.Symlink(c, in, target, name, out)
		})
	case opRename:
		return call(r, func(in *renameIn1, rest []byte, _ *none) Status {
			return s.rename(c, &RenameIn{InHeader: in.InHeader, Newdir: in.newdir}, rest)
		})
	case opRename2:
		return call(r, func(in *RenameIn, rest []byte, _ *none) Status { return s.rename(c, in, rest) })
	}
	target, code := fs.Readlink(c, r.header())
	return result{code: code, data: target}
}

func (s *Server) rename(cancel <-chan struct{}, in *RenameIn, names []byte) Status {
	from, rest, ok := text(names)
	to, _, ok2 := text(rest)
	if !ok || !ok2 {
		return EIO
	}
	return s.fs.Rename(cancel, in, from, to)
}

func (s *Server) xattrs(r *request) result {
	c, fs, op := r.cancel, s.fs, r.header().Opcode
	switch op {
	case opRemovexattr:
		return named(r, func(in *InHeader, name string, _ *none) Status { return fs.RemoveXAttr(c, in, name) })
	case opSetxattr:
		return call(r, func(in *SetXAttrIn, rest []byte, _ *none) Status {
			name, value, ok := text(rest)
			if !ok || len(value) < int(in.Size) {
				return EIO
			}
			return fs.SetXAttr(c, in, name, value[:in.Size])
		})
	}
	in, rest := as[getXAttrIn](r)
	if in == nil {
		return result{code: EIO}
	}
	dest := r.room(in.size)
	var size uint32
	var code Status
	if op == opListxattr {
		size, code = fs.ListXAttr(c, &in.InHeader, dest)
	} else if name, _, ok := text(rest); ok {
		size, code = fs.GetXAttr(c, &in.InHeader, name, dest)
	} else {
		code = EIO
	}
	if in.size > 0 {
		if code == OK && int(size) > len(dest) {
			code = ERANGE
		}
		return result{code: code, data: dest[:min(int(size), len(dest))]}
	}
	if code == ERANGE { // only the size was asked for
		code = OK
	}
	reply[sizeOut](r).size = size
	return result{code: code, size: int(unsafe.Sizeof(sizeOut{}))}
}

func (s *Server) dirs(r *request) result {
	c, fs := r.cancel, s.fs
	switch op := r.header().Opcode; op {
	case opOpendir:
		return call(r, func(in *OpenIn, _ []byte, out *OpenOut) Status { return fs.OpenDir(c, in, out) })
	case opFsyncdir:
		return call(r, func(in *FsyncIn, _ []byte, _ *none) Status { return fs.FsyncDir(c, in) })
	case opReleasedir:
		return call(r, func(in *ReleaseIn, _ []byte, _ *none) Status { fs.ReleaseDir(in); return OK })
	default:
		in, _ := as[ReadIn](r)
		if in == nil {
			return result{code: EIO}
		}
		room := r.room(in.Size)
		l := &DirEntryList{buf: room[:0], size: len(room), off: in.Offset}
		list := fs.ReadDir
		if op == opReaddirplus {
			list = fs.ReadDirPlus
		}
		code := list(c, in, l)
		return result{code: code, data: l.buf}
	}
}

func (s *Server) files(r *request) result {
	c, fs := r.cancel, s.fs
	switch r.header().Opcode {
	case opGetattr:
		return call(r, func(in *GetAttrIn, _ []byte, out *AttrOut) Status { return fs.GetAttr(c, in, out) })
	case opSetattr:
		return call(r, func(in *SetAttrIn, _ []byte, out *AttrOut) Status { return fs.SetAttr(c, in, out) })
	case opAccess:
		return call(r, func(in *AccessIn, _ []byte, _ *none) Status { return fs.Access(c, in) })
	case opStatfs:
		return call(r, func(in *InHeader, _ []byte, out *StatfsOut) Status { return fs.StatFs(c, in, out) })
	case opOpen:
		return call(r, func(in *OpenIn, _ []byte, out *OpenOut) Status { return fs.Open(c, in, out) })
	case opCreate:
		return named(r, func(in *CreateIn, name string, out *CreateOut) Status { return fs.Create(c, in, name, out) })
	case opRead:
		in, _ := as[ReadIn](r)
		if in == nil {
			return result{code: EIO}
		}
		from, code := fs.Read(c, in, nil)
		if code != OK {
			return result{code: code}
		}
		room := r.room(in.Size)
		m, code := from.into(room)
		return result{code: code, data: room[:m]}
	case opWrite:
		return call(r, func(in *WriteIn, data []byte, out *sizeOut) (code Status) {
			if len(data) < int(in.Size) {
				return EIO
			}
			out.size, code = fs.Write(c, in, data[:in.Size])
			return code
		})
	case opLseek:
		return call(r, func(in *LseekIn, _ []byte, out *LseekOut) Status { return fs.Lseek(c, in, out) })
	case opCopyFileRange:
		return call(r, func(in *CopyFileRangeIn, _ []byte, out *sizeOut) (code Status) {
			out.size, code = fs.CopyFileRange(c, in)
			return code
		})
	case opFallocate:
		return call(r, func(in *FallocateIn, _ []byte, _ *none) Status { return fs.Fallocate(c, in) })
	case opFlush:
		return call(r, func(in *FlushIn, _ []byte, _ *none) Status { return fs.Flush(c, in) })
	case opGetlk:
		return call(r, func(in *LkIn, _ []byte, out *LkOut) Status { return fs.GetLk(c, in, out) })
	case opSetlk, opSetlkw:
		wait := r.header().Opcode == opSetlkw
		return call(r, func(in *LkIn, _ []byte, _ *none) Status { return fs.SetLk(c, in, wait) })
	case opFsync:
		return call(r, func(in *FsyncIn, _ []byte, _ *none) Status { return fs.Fsync(c, in) })
	case opRelease:
		return call(r, func(in *ReleaseIn, _ []byte, _ *none) Status { fs.Release(c, in); return OK })
	}
	return result{code: ENOSYS}
}
