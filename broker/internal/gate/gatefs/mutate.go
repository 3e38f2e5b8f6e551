//go:build linux

package gatefs

import (
	"strconv"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
)

// place is home and mayMake in one. Every directory stays where it is until done is called: for all sessions where the
// name may be made only as long as it does.
func (s *Server) place(id uint64, name string, how making) (n *nodes.Node, done func(), code fuse.Status) {
	done = s.Still()
	if n, code = s.home(id, name); code != fuse.OK {
		return nil, done, code
	}
	if n.Zone.Waits(name) {
		still, alone := done, s.opts.Session.Alone(true)
		if alone == nil {
			return nil, still, fuse.EAGAIN
		}
		done = func() { alone(); still() }
	}
	return n, done, s.mayMake(n, name, how)
}

// Create makes a file and opens it.
func (s *Server) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	g, asked, code := s.askedPlace(cancel, &in.InHeader, name)
	if asked {
		return s.createNew(cancel, in, g, name, out)
	} else if code != fuse.OK {
		return code
	}
	n, done, code := s.place(in.NodeId, name, byCreate)
	defer done()
	if code != fuse.OK {
		return s.tellMore(&in.InHeader, n, name, code, grants.Request{Empty: in.Flags&unix.O_EXCL != 0})
	}
	defer s.expect(n, name, unix.IN_CREATE, unix.IN_ATTRIB, unix.IN_MODIFY)()
	flags := int(in.Flags)&(hostFlags|unix.O_EXCL) | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK
	mode := in.Mode & 0o1777
	var fd int
	if s.candidate(n, name) {
		if fd, code = s.makeFile(&in.InHeader, n, name, flags, mode); code != fuse.OK {
			return code
		}
	} else {
		var err error
		if fd, err = names.OpenBeneath(n.FD, name, flags, mode); err != nil {
			return status(err)
		}
	}
	code = s.enterMade(n, name, fd, mode, &out.EntryOut)
	if code != fuse.OK {
		unix.Close(fd)
		return code
	}
	maybe := false
	if v := s.verdict(n, name); v.Secret != nil {
		s.keeper.Own(fd, nil)
		maybe = v.Secret.Holds != nil
	}
	if out.Attr.Mode&unix.S_IFMT != unix.S_IFREG { // the host had something else there
		unix.Close(fd)
		s.nodes.Forget(out.NodeId, 1)
		return fuse.EACCES
	}
	made := s.nodes.Get(out.NodeId)
	out.OpenFlags |= s.shares(made, in.Flags, fd)
	out.Fh = s.files.Add(&handle{fd: fd, node: made, append: in.Flags&unix.O_APPEND != 0, maybe: maybe})
	return fuse.OK
}

// enterMade gives a new object the mode that was asked for and enters it.
func (s *Server) enterMade(n *nodes.Node, name string, fd int, mode uint32, out *fuse.EntryOut) fuse.Status {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return status(err)
	}
	if err := s.restoreMode(fd, &st, mode); err != nil {
		return status(err)
	}
	held, err := s.reopen(fd, unix.O_PATH)
	if err != nil {
		return status(err)
	}
	return s.adopt(n, name, held, out)
}

// restoreMode gives a new object what the server's own umask has taken from mode. The kernel has applied the caller's.
func (s *Server) restoreMode(fd int, st *unix.Stat_t, mode uint32) error {
	lost := mode &^ st.Mode & s.umask()
	if lost == 0 {
		return nil
	}
	st.Mode |= lost
	return unix.Fchmodat(s.procfd, strconv.Itoa(fd), st.Mode&0o3777, 0)
}

// made enters what a name-making call has just made.
func (s *Server) made(n *nodes.Node, name string, mode uint32, out *fuse.EntryOut) fuse.Status {
	fd, err := names.HoldBeneath(n.FD, name)
	if err != nil {
		return status(err)
	}
	defer unix.Close(fd)
	return s.enterMade(n, name, fd, mode, out)
}

// Mkdir makes a directory.
func (s *Server) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if code, ok := s.madeRepeated(&in.InHeader, name, unix.S_IFDIR, out); ok {
		return code
	}
	g, asked, code := s.askedPlace(cancel, &in.InHeader, name)
	if asked {
		return s.mkdirNew(cancel, in, g, name, out)
	} else if code != fuse.OK {
		return code
	}
	n, done, code := s.place(in.NodeId, name, byMkdir)
	defer done()
	if code != fuse.OK {
		return s.tellMore(&in.InHeader, n, name, code, grants.Request{Empty: true})
	}
	defer s.expect(n, name, unix.IN_CREATE, unix.IN_ATTRIB)()
	mode := in.Mode & 0o1777
	if err := unix.Mkdirat(n.FD, name, mode); err != nil {
		return s.occupied(&in.InHeader, n, name, err)
	}
	code = s.made(n, name, mode, out)
	if code == fuse.OK {
		if s.candidate(n, name) {
			s.keeper.Own(s.nodes.Get(out.NodeId).FD, nil)
		}
		s.noteMkdir(n, name, s.nodes.Get(out.NodeId).Key.ID)
	}
	return code
}

// Mknod makes files, FIFOs and sockets. A socket made here belongs to the sandbox: the host sees its name and reaches
// nobody.
func (s *Server) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	if code, ok := s.madeRepeated(&in.InHeader, name, in.Mode&unix.S_IFMT, out); ok {
		return code
	}
	switch in.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK:
	default:
		return fuse.EPERM
	}
	g, asked, code := s.askedDir(cancel, &in.InHeader, in.NodeId, name)
	if asked {
		defer g.done()
		return s.mknodNew(cancel, in, g, name, out)
	} else if code != fuse.OK {
		return code
	}
	n, done, code := s.place(in.NodeId, name, byOther)
	defer done()
	if code != fuse.OK {
		return s.tellGuarded(&in.InHeader, n, name, code)
	}
	defer s.expect(n, name, unix.IN_CREATE, unix.IN_ATTRIB)()
	mode := in.Mode & (unix.S_IFMT | 0o1777)
	if s.candidate(n, name) && mode&unix.S_IFMT == unix.S_IFREG {
		fd, code := s.makeFile(&in.InHeader, n, name, unix.O_WRONLY|unix.O_EXCL, mode&0o1777)
		if code != fuse.OK {
			return code
		}
		defer unix.Close(fd)
		defer s.keeper.Keeping(fd, nil)()
		return s.enterMade(n, name, fd, mode&0o1777, out)
	}
	if err := unix.Mknodat(n.FD, name, mode, 0); err != nil {
		return s.occupied(&in.InHeader, n, name, err)
	}
	return s.made(n, name, mode&0o1777, out)
}

// Symlink makes a link; where it leads is for the reader's kernel to say.
func (s *Server) Symlink(cancel <-chan struct{}, h *fuse.InHeader, target, name string,
	out *fuse.EntryOut) fuse.Status {
	if code, ok := s.madeRepeated(h, name, unix.S_IFLNK, out); ok {
		return code
	}
	g, asked, code := s.askedDir(cancel, h, h.NodeId, name)
	if asked {
		defer g.done()
		return s.symlinkAsked(cancel, h, g, target, name, out)
	} else if code != fuse.OK {
		return code
	}
	n, done, code := s.place(h.NodeId, name, byLink)
	defer done()
	if code == fuse.OK {
		code = s.mayLink(n, target)
	}
	if code != fuse.OK {
		return s.tellGuarded(h, n, name, code)
	}
	defer s.expect(n, name, unix.IN_CREATE)()
	if err := unix.Symlinkat(target, n.FD, name); err != nil {
		return s.occupied(h, n, name, err)
	}
	fd, err := names.HoldBeneath(n.FD, name)
	if err != nil {
		return status(err)
	}
	s.ownLink(n, name, target, fd)
	return s.adopt(n, name, fd, out)
}

// Link makes a second name. A guarded file must not get one under which it can be written.
func (s *Server) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	g, asked, code := s.askedDir(cancel, &in.InHeader, in.NodeId, name)
	switch {
	case asked && g.granted:
		g.done()
		return fuse.EXDEV
	case asked:
		defer g.done()
		return s.needsTree(cancel, &in.InHeader, g, name) // a second name would be under other rules than the first
	case code != fuse.OK:
		return code
	}
	n, done, code := s.place(in.NodeId, name, byOther)
	defer done()
	if code != fuse.OK {
		return s.tellGuarded(&in.InHeader, n, name, code)
	}
	from := s.nodes.Get(in.Oldnodeid)
	switch {
	case from == nil:
		return errno(unix.ESTALE)
	case from.Kind != nodes.Loop:
		return fuse.EXDEV
	case from.ReadOnly || from.Text:
		return fuse.EROFS
	}
	t := target{Node: from, host: from.FD}
	if from.FD < 0 {
		if t, code = s.openAgain(from); code != fuse.OK {
			return code
		}
	}
	defer t.done()
	if s.concealed(from, t.host) {
		return fuse.ENOENT
	}
	if from.Type == unix.S_IFLNK {
		if code = s.mayTakeLink(n, name, t.host, ""); code != fuse.OK {
			return s.tellGuarded(&in.InHeader, n, name, code)
		}
	}
	s.noteWriting(from) // by the new name, as well
	defer s.expect(n, name, unix.IN_CREATE)()
	was := s.keeper.Keeping(t.host, nil)
	if err := unix.Linkat(s.procfd, strconv.Itoa(t.host), n.FD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return s.occupied(&in.InHeader, n, name, err)
	}
	if was(); s.candidate(n, name) {
		s.keeper.Own(t.host, nil)
	}
	return s.lookupLoop(&in.InHeader, n, name, out)
}

// Unlink removes a name that is not a directory's.
func (s *Server) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(cancel, h, name, 0)
}

// Rmdir removes an empty directory.
func (s *Server) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.remove(cancel, h, name, unix.AT_REMOVEDIR)
}

func (s *Server) remove(cancel <-chan struct{}, h *fuse.InHeader, name string, flags int) fuse.Status {
	if code, ok := s.removedRepeated(h, name); ok {
		return code
	}
	g, asked, code := s.askedDir(cancel, h, h.NodeId, name)
	if asked {
		defer g.done()
		return s.removeAsked(cancel, h, g, name, flags)
	} else if code != fuse.OK {
		return code
	}
	defer s.Still()()
	n, code := s.existing(h.NodeId, name)
	if code != fuse.OK {
		return code
	}
	if code := s.mayTake(n, name, flags != 0); code != fuse.OK {
		return s.tellGuarded(h, n, name, code)
	}
	s.noteMaking(n, name, byOther)
	defer s.expect(n, name, unix.IN_DELETE, unix.IN_MOVED_FROM)()
	secret := s.candidate(n, name)
	if !secret || flags == 0 { // who has a file open, or its other name, goes on with it
		defer s.keepingName(n, name)()
	}
	if secret {
		return status(s.keeper.Remove(s.named(n, name), flags != 0))
	}
	if flags == 0 {
		return status(unix.Unlinkat(n.FD, name, 0))
	}
	id, err := names.IDAt(n.FD, name)
	if err == nil {
		err = unix.Unlinkat(n.FD, name, flags)
	}
	if err == nil {
		s.opts.Session.Removed(n.Key.ID, name, id)
	}
	return status(err)
}
