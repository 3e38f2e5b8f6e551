//go:build linux

package gatefs

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/locks"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
)

const (
	// hostFlags are the open flags that reach the host. O_APPEND is kept in the handle: the host would append even the
	// pages of a shared mapping that the kernel writes back at their offset.
	hostFlags = unix.O_ACCMODE | unix.O_TRUNC | unix.O_SYNC | unix.O_DSYNC | unix.O_NONBLOCK
	// execFlag marks the open of execve (FMODE_EXEC).
	execFlag = 0x20
)

// Open opens a regular file; the kernel handles FIFOs and sockets itself and mounts the file system nodev.
func (s *Server) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	write := in.Flags&unix.O_ACCMODE != unix.O_RDONLY || in.Flags&unix.O_TRUNC != 0
	if n := s.nodes.Get(in.NodeId); n != nil && write && s.openRepeated(&in.InHeader) {
		out.Fh = s.files.Add(&handle{fd: -1, node: n})
		return fuse.OK
	}
	o := grants.OpOpen
	switch {
	case write:
		o = grants.OpWrite
	case in.Flags&execFlag != 0:
		o = grants.OpExec
	}
	t, code := s.enter(cancel, &in.InHeader, o)
	if code != fuse.OK {
		return code
	}
	defer t.done()
	if write && !t.writable() {
		return s.tellGuarded(&in.InHeader, t.Node, "", fuse.EROFS)
	}
	if t.Type != unix.S_IFREG {
		return fuse.EACCES
	}
	if t.Kind == nodes.Loop && (!s.current(t.Node, t.host) || s.concealed(t.Node, t.host)) {
		return errno(unix.ESTALE)
	}
	if write && t.Kind == nodes.Loop {
		s.noteWriting(t.Node)
	}
	maybe := write && s.toBeWritten(t.Node, t.host)
	if in.Flags&unix.O_TRUNC != 0 {
		defer s.keeper.Keeping(t.host, nil)()
		defer s.expectAt(t.Node, unix.IN_MODIFY)()
	}
	fd, err := s.reopen(t.host, int(in.Flags)&hostFlags)
	if err == nil && !write && s.config(t.Node) {
		fd, err = names.Shown(fd, s.ownText(t.Node))
	}
	if err != nil {
		return status(err)
	}
	if in.Flags&unix.O_TRUNC != 0 {
		if err := s.dropSetID(fd, strconv.Itoa(fd)); err != nil {
			unix.Close(fd)
			return status(err)
		}
	}
	out.OpenFlags |= s.shares(t.Node, in.Flags, fd)
	if out.OpenFlags == 0 && t.Kind == nodes.Loop && !t.Lent.Load() {
		if s.calm(t.Node, fd) {
			out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
		} else { // of two answers at once the kernel believes the first, perhaps the older, and reads no further
			s.fuse.InodeNotify(t.Node.ID)
		}
	}
	out.Fh = s.files.Add(&handle{fd: fd, node: t.Node, append: in.Flags&unix.O_APPEND != 0,
		maybe: maybe, runs: o == grants.OpExec})
	return fuse.OK
}

// shares says how a file of a guarded directory is opened of which a mapping would not show what others write, nor they
// what is written there: one that is opened to be written, too, that somebody has who was lent it, or of which a copy
// may be shown. There is no shared mapping of it then: with direct I/O the kernel refuses that (ENODEV).
func (s *Server) shares(n *nodes.Node, flags uint32, fd int) uint32 {
	if n == nil || n.Kind != nodes.Loop || s.opts.Alone && !n.Key.Config {
		return 0
	}
	mode := flags & unix.O_ACCMODE
	if n.Key.Config || mode == unix.O_RDWR || n.Lent.Load() && mode == unix.O_RDONLY && names.BeingWritten(fd) {
		return fuse.FOPEN_DIRECT_IO
	}
	return 0
}

// noteWriting is noteMaking for a file that is there.
func (s *Server) noteWriting(n *nodes.Node) {
	if parent, name := s.nodes.NameOf(n); parent != nil && parent.Zone != nil {
		s.noteMaking(parent, name, byOther)
	}
}

// calm reports whether the cached pages of a file are surely those of the host: nothing has changed since they were
// read, and at that time the last change was older than any file system's clock tick.
func (s *Server) calm(n *nodes.Node, fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	last := max(time.Unix(st.Mtim.Unix()).UnixNano(), time.Unix(st.Ctim.Unix()).UnixNano())
	now := nodes.Signature{Size: st.Size, ModTime: st.Mtim, ChangeTime: st.Ctim,
		Calm: time.Now().UnixNano()-last > int64(2*time.Second)}
	return s.nodes.Filled(n, now) == now && now.Calm
}

// Read answers from the host file; the library reads it before Release can close it.
func (s *Server) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	fd := s.files.file(in.Fh)
	if fd < 0 {
		return fuse.ReadResult{}, fuse.EBADF
	}
	return fuse.ReadResultFd(uintptr(fd), int64(in.Offset), int(in.Size)), fuse.OK
}

// Write writes through to the host file.
func (s *Server) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	h := s.files.Get(in.Fh)
	if h == nil || h.fd < 0 {
		return 0, fuse.EBADF
	}
	if h.node.Text {
		n, err := s.writeText(h, data, int64(in.Offset))
		if err != nil {
			return 0, s.tellGuarded(&in.InHeader, h.node, "", status(err))
		}
		return uint32(n), fuse.OK
	}
	if s.opts.Access.Marked(int(in.Pid), h.node.Path, data) {
		return 0, fuse.EACCES
	}
	defer s.keeper.Keeping(h.fd, nil)()
	defer s.expectAt(h.node, unix.IN_MODIFY)()
	if in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0 {
		if err := s.dropSetID(h.fd, strconv.Itoa(h.fd)); err != nil {
			return 0, status(err)
		}
	}
	for {
		var n int
		var err error
		if h.append && in.WriteFlags&fuse.WRITE_CACHE == 0 {
			n, err = unix.Pwritev2(h.fd, [][]byte{data}, 0, unix.RWF_APPEND)
		} else {
			n, err = unix.Pwrite(h.fd, data, int64(in.Offset))
		}
		if err != unix.EINTR {
			return uint32(max(n, 0)), status(err)
		}
	}
}

// Flush has nothing to flush: writes go through. A process that closes a file gives its record locks on it back.
func (s *Server) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	if h := s.files.Get(in.Fh); h != nil {
		s.locks.Drop(locks.Owner{Object: h.node.ID, ID: in.LockOwner})
	}
	return fuse.OK
}

// Fsync makes a file durable.
func (s *Server) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	fd := s.files.file(in.Fh)
	if fd < 0 {
		return fuse.EBADF
	}
	if in.FsyncFlags&1 != 0 {
		return status(unix.Fdatasync(fd))
	}
	return status(unix.Fsync(fd))
}

// FsyncDir makes a directory's names durable.
func (s *Server) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if fd := s.files.file(in.Fh); fd >= 0 {
		return status(unix.Fsync(fd))
	}
	return fuse.OK
}

// Fallocate reserves or punches space.
func (s *Server) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	h := s.files.Get(in.Fh)
	switch {
	case h == nil || h.fd < 0:
		return fuse.EBADF
	case h.node.Text:
		return fuse.EACCES
	}
	defer s.keeper.Keeping(h.fd, nil)()
	defer s.expectAt(h.node, unix.IN_MODIFY)()
	for {
		err := unix.Fallocate(h.fd, in.Mode, int64(in.Offset), int64(in.Length))
		if err != unix.EINTR {
			return status(err)
		}
	}
}

// Lseek finds data and holes.
func (s *Server) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	fd := s.files.file(in.Fh)
	if fd < 0 {
		return fuse.EBADF
	}
	off, err := unix.Seek(fd, int64(in.Offset), int(in.Whence))
	out.Offset = uint64(off)
	return status(err)
}

// CopyFileRange copies on the host, sharing extents where the file system can.
func (s *Server) CopyFileRange(cancel <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	from, h := s.files.file(in.FhIn), s.files.Get(in.FhOut)
	switch {
	case from < 0 || h == nil || h.fd < 0:
		return 0, fuse.EBADF
	case h.node.Text:
		return 0, fuse.EXDEV // a copy is written
	}
	defer s.keeper.Keeping(h.fd, nil)()
	defer s.expectAt(h.node, unix.IN_MODIFY)()
	offIn, offOut := int64(in.OffIn), int64(in.OffOut)
	n, err := unix.CopyFileRange(from, &offIn, h.fd, &offOut, int(min(in.Len, 1<<30)), int(in.Flags))
	return uint32(max(n, 0)), status(err)
}

// StatFs describes the host file system behind the object.
func (s *Server) StatFs(cancel <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	t, code := s.enter(cancel, h, grants.OpStatFs)
	if code != fuse.OK {
		return code
	}
	defer t.done()
	if t.host < 0 || t.Kind == nodes.Static && t.Dir.Kind == served.Skeleton {
		*out = fuse.StatfsOut{Bsize: 4096, Frsize: 4096, NameLen: 255}
		return fuse.OK
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(t.host, &st); err != nil {
		return status(err)
	}
	*out = fuse.StatfsOut{Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail, Files: st.Files, Ffree: st.Ffree,
		Bsize: uint32(st.Bsize), Frsize: uint32(st.Frsize), NameLen: uint32(st.Namelen)}
	return fuse.OK
}

// Access answers access and chdir by asking the host as the user. Whether something may be written is answered as
// things are and asked about when it is written: editors look at every file that they only read.
func (s *Server) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	o := grants.OpAccess
	if in.Mask&(fuse.R_OK|fuse.W_OK) != 0 {
		o = grants.OpOpen
	}
	t, code := s.enter(cancel, &in.InHeader, o)
	if code != fuse.OK {
		return code
	}
	defer t.done()
	if t.host < 0 || t.veiled {
		return fuse.OK
	}
	if in.Mask&fuse.W_OK != 0 && !t.writable() {
		return fuse.EACCES
	}
	if in.Mask == 0 || t.Type == unix.S_IFLNK {
		return fuse.OK
	}
	return status(unix.Faccessat(s.procfd, strconv.Itoa(t.host), in.Mask, unix.AT_EACCESS))
}

// Readlink tells a symlink's target; the kernel follows it inside the sandbox.
func (s *Server) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	if n := s.nodes.Get(h.NodeId); n != nil && n.Kind == nodes.Gated && n.Base != nil && n.Type == unix.S_IFLNK {
		if c, ok := n.Base.Dir.Children[n.Rel]; ok && c.Kind == served.Symlink {
			return []byte(c.Target), fuse.OK
		}
	}
	t, code := s.enter(cancel, h, grants.OpReadlink)
	if code != fuse.OK {
		return nil, code
	}
	defer t.done()
	target, err := names.Readlink(t.host, "")
	return []byte(target), status(err)
}
