//go:build linux

package gatefs

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// unmapped is an id that no sandbox maps; inside it shows as the overflow id.
const unmapped = 65534

// fill translates host attributes. Whoever owns a file or directory, it appears as Options.Owner's: the kernel refuses
// to write, remove and rename what belongs to somebody it cannot name, and the permission check that counts is made by
// the host, as the server's user with all of his groups. Links of others stay others': by their owner the kernel
// decides whether to follow them (fs.protected_symlinks).
func (s *Server) fill(st *unix.Stat_t, out *fuse.Attr) {
	out.Of(st)
	out.Mode = names.VisibleMode(st.Mode)
	out.Uid, out.Gid = s.opts.Owner.UID, s.opts.Owner.GID
	// The kernel lets nobody write to what nobody inside owns.
	if st.Uid != s.uid && (st.Mode&unix.S_IFMT == unix.S_IFLNK || s.opts.Alone && st.Mode&0o022 == 0) {
		out.Uid = unmapped
	}
}

// fillSkeleton is fill for a directory of names that are granted. Nothing is made or removed in it, and programs that
// judge by owner and mode where they may write (perl's -w) are to see that.
func (s *Server) fillSkeleton(d *nodes.Dir, out *fuse.Attr) {
	s.fill(&d.Attr, out)
	if d.Attr.Uid != s.uid {
		out.Uid = unmapped
	}
}

// typeOnly is all that is shown of an object before it is granted. Its number is that which the listing tells, too: who
// copies a file compares it before and after opening.
func (s *Server) typeOnly(ino uint64, n *nodes.Node, out *fuse.Attr) {
	// Executable: without the bit execve fails before it gets as far as the open that asks.
	*out = fuse.Attr{Ino: ino, Mode: n.Type | 0o555, Nlink: 1, Owner: fuse.Owner{Uid: s.opts.Owner.UID,
		Gid: s.opts.Owner.GID}, Blksize: 4096}
}

// numberOf is the host's number of a gated object, or the server's own where that cannot be told.
func (s *Server) numberOf(n *nodes.Node) uint64 {
	if n.Base != nil && n.Kind == nodes.Gated {
		fd, _, _ := s.hold(n)
		defer unix.Close(fd)
		if _, ino, _, err := names.Inspect(fd); err == nil {
			return ino
		}
	}
	return n.ID
}

func (s *Server) attrValid(n *nodes.Node) time.Duration {
	switch {
	case n.Kind == nodes.Static && n.Dir.Kind == served.Skeleton:
		return forever
	case n.Kind == nodes.Gated, n.Key.Config:
		return 0
	case n.Type == unix.S_IFDIR:
		return dirValid
	case n.Lent.Load():
		return 0
	case n.Relied.Load():
		return s.rely
	}
	return fileAttrValid
}

// GetAttr answers stat and fstat.
func (s *Server) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if in.Flags()&fuse.FUSE_GETATTR_FH != 0 {
		if h := s.files.Get(in.Fh()); h != nil && h.fd >= 0 && !s.config(h.node) {
			out.SetTimeout(s.attrValid(h.node))
			return s.statNode(h.node, h.fd, &out.Attr)
		}
	}
	if n := s.nodes.Get(in.NodeId); n != nil && n.Kind == nodes.Gated && s.statHeld(n, &out.Attr) {
		return fuse.OK
	}
	t, code := s.enter(cancel, &in.InHeader, grants.OpStat)
	if code != fuse.OK {
		return code
	}
	defer t.done()
	out.SetTimeout(s.attrValid(t.Node))
	if t.veiled {
		s.typeOnly(s.numberOf(t.Node), t.Node, &out.Attr)
		return fuse.OK
	}
	if t.Kind == nodes.Static && t.Dir.Kind == served.Skeleton {
		s.fillSkeleton(t.Dir, &out.Attr)
		return fuse.OK
	}
	return s.statNode(t.Node, t.host, &out.Attr)
}

// statHeld tells what somebody knows who has a node open, and may have mapped, whatever has its path by now.
func (s *Server) statHeld(n *nodes.Node, out *fuse.Attr) bool {
	fd := s.files.dup(n)
	defer unix.Close(fd)
	return fd >= 0 && s.statFd(fd, out) == fuse.OK
}

func (s *Server) statFd(fd int, out *fuse.Attr) fuse.Status { return s.statNode(nil, fd, out) }

func (s *Server) statNode(n *nodes.Node, fd int, out *fuse.Attr) fuse.Status {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return status(err)
	}
	s.describe(n, fd, &st, out)
	return fuse.OK
}

// describe is fill for what has a node and is behind fd.
func (s *Server) describe(n *nodes.Node, fd int, st *unix.Stat_t, out *fuse.Attr) {
	s.fill(st, out)
	if n != nil {
		s.noteTold(n, st)
	}
	if n != nil && s.config(n) {
		out.Size = names.ShownSize(fd, out.Size, s.ownText(n))
	}
}

// SetAttr answers chmod, chown, truncate and utimens. The kernel believes the size in the answer even if it was told a
// newer one meanwhile (fuse_do_setattr), so it is to ask again.
func (s *Server) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	defer out.SetTimeout(0)
	if s.setRepeated(in) {
		get := fuse.GetAttrIn{InHeader: in.InHeader}
		if n := s.nodes.Get(in.NodeId); s.GetAttr(cancel, &get, out) != fuse.OK && n != nil { // the host has it no more
			out.Attr = s.standInAttr(n)
		}
		return fuse.OK
	}
	t, open := s.opened(in)
	if !open {
		var no fuse.Status
		if t, no = s.enter(cancel, &in.InHeader, grants.OpSetAttr); no != fuse.OK {
			return no
		}
	}
	defer t.done()
	if !t.writable() && !t.keepsOut(in) {
		return s.tellGuarded(&in.InHeader, t.Node, "", fuse.EROFS)
	}
	var st unix.Stat_t
	if err := unix.Fstat(t.host, &st); err != nil {
		return status(err)
	}
	if code := s.chown(&st, in); code != fuse.OK {
		return code
	}
	if t.Kind == nodes.Loop && s.concealed(t.Node, t.host) {
		return errno(unix.ESTALE)
	}
	if _, ok := in.GetSize(); ok {
		s.noteWriting(t.Node)
		s.toBeWritten(t.Node, t.host)
	}
	defer s.keeper.Keeping(t.host, nil)()
	defer s.expectAt(t.Node, unix.IN_ATTRIB, unix.IN_MODIFY)()
	if err := s.change(t, &st, in); err != nil {
		return status(err)
	}
	return s.statNode(t.Node, t.host, &out.Attr)
}

// keepsOut says whether only the mode of a configuration is set, to one by which nobody else may write it.
func (t *target) keepsOut(in *fuse.SetAttrIn) bool {
	const mode = fuse.FATTR_MODE | fuse.FATTR_CTIME
	next, ok := in.GetMode()
	if !ok || in.Valid&^mode != 0 || t.Kind != nodes.Loop || !t.Key.Mode {
		return false
	}
	var st unix.Stat_t
	return unix.Fstat(t.host, &st) == nil && guard.ConfigMode(st.Mode, next&0o777) == next&0o777
}

// opened finds the gated object of a change through a descriptor that is open for writing: that was allowed.
func (s *Server) opened(in *fuse.SetAttrIn) (target, bool) {
	fh, ok := in.GetFh()
	if !ok {
		return target{}, false
	}
	h := s.files.Get(fh)
	if h == nil || h.fd < 0 || h.node.Kind != nodes.Gated {
		return target{}, false
	}
	flags, err := unix.FcntlInt(uintptr(h.fd), unix.F_GETFL, 0)
	return target{Node: h.node, host: h.fd, freely: true}, err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// chown allows what changes nothing, to the owner: the sandbox knows one user and one group.
func (s *Server) chown(st *unix.Stat_t, in *fuse.SetAttrIn) fuse.Status {
	uid, ofUser := in.GetUID()
	gid, ofGroup := in.GetGID()
	owner := st.Uid == s.uid || s.root
	if ofUser && (!owner || uid != s.opts.Owner.UID) || ofGroup && (!owner || gid != s.opts.Owner.GID) {
		return fuse.EPERM
	}
	return fuse.OK
}

func (s *Server) change(t target, st *unix.Stat_t, in *fuse.SetAttrIn) error {
	name := strconv.Itoa(t.host)
	if in.Valid&(fuse.FATTR_UID|fuse.FATTR_GID) != 0 { // to whom it belongs: that sets the time of change, and no more
		if err := unix.Fchownat(t.host, "", -1, -1, unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	if mode, ok := in.GetMode(); ok {
		mode &= 0o1777
		if t.Type == unix.S_IFDIR {
			mode |= st.Mode & unix.S_ISGID
		}
		if t.Type == unix.S_IFLNK {
			return unix.EOPNOTSUPP
		}
		if err := unix.Fchmodat(s.procfd, name, mode, 0); err != nil {
			return err
		}
	}
	if size, ok := in.GetSize(); ok {
		if err := s.truncate(t, in, int64(size)); err != nil {
			return err
		}
	}
	if in.Valid&fuse.FATTR_KILL_SUIDGID != 0 {
		if err := s.dropSetID(t.host, name); err != nil {
			return err
		}
	}
	if in.Valid&(fuse.FATTR_ATIME|fuse.FATTR_MTIME) == 0 {
		return nil
	}
	ts := in.Times()
	return unix.UtimesNanoAt(s.procfd, name, ts[:], 0)
}

func (s *Server) truncate(t target, in *fuse.SetAttrIn, size int64) error {
	if t.Text && size != 0 {
		return unix.EACCES
	}
	if fh, ok := in.GetFh(); ok {
		if h := s.files.Get(fh); h != nil && h.fd >= 0 {
			return unix.Ftruncate(h.fd, size)
		}
	}
	if t.Type != unix.S_IFREG {
		return unix.EINVAL
	}
	if t.Kind == nodes.Loop && !s.current(t.Node, t.host) {
		return unix.ESTALE
	}
	fd, err := s.reopen(t.host, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer s.expectAt(t.Node, unix.IN_CLOSE_WRITE)()
	defer unix.Close(fd)
	return unix.Ftruncate(fd, size)
}

// dropSetID does what the host kernel does by itself unless the server runs as root.
func (s *Server) dropSetID(fd int, name string) error {
	if !s.root {
		return nil
	}
	return names.DropSetID(s.procfd, fd, name)
}
