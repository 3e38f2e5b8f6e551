//go:build linux

package gatefs

import (
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/guard"
)

// mayAppear waits for the answer to a new name. The kernel holds the directory's lock meanwhile: others that look for
// names it does not know there wait as well, as long as the answer takes.
func (s *Server) mayAppear(cancel <-chan struct{}, h *fuse.InHeader, g askedDir, name string,
	typ uint32, o grants.Op) (*nodes.Node, fuse.Status) {
	c := below(g.Node, name)
	c.Type, c.ID = typ, s.nodes.PathID(c.Path, typ, "")
	if g.granted {
		return c, fuse.OK
	}
	_, _, code := s.permission(cancel, h, c, o)
	return c, code
}

// mayAppearAt is mayAppear for what can be made where the host has no directory yet: that is made with the answer.
func (s *Server) mayAppearAt(cancel <-chan struct{}, h *fuse.InHeader, g *askedDir, name string,
	typ uint32) (*nodes.Node, fuse.Status) {
	c, code := s.mayAppear(cancel, h, *g, name, typ, grants.OpMake)
	if code != fuse.OK {
		return c, code
	}
	var err error
	*g, err = s.makeHost(*g)
	return c, status(err)
}

// createNew makes and opens a file that a question has allowed. It is the host's own; who has it open writes through
// the server, and whoever comes next is asked about, or let in, as with any other file.
func (s *Server) createNew(cancel <-chan struct{}, in *fuse.CreateIn, g askedDir, name string,
	out *fuse.CreateOut) fuse.Status {
	defer func() { g.done() }()
	c, code := s.mayAppearAt(cancel, &in.InHeader, &g, name, unix.S_IFREG)
	if code != fuse.OK {
		return code
	}
	flags := int(in.Flags)&(hostFlags|unix.O_EXCL) | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK
	fd, err := s.noted(c, g, func() (int, error) {
		return names.OpenBeneath(g.fd, name, flags|unix.O_EXCL, in.Mode&0o777)
	})
	if err != nil {
		return status(err)
	}
	if code := s.enterNew(c, fd, in.Mode&0o777, &out.EntryOut); code != fuse.OK {
		unix.Close(fd)
		return code
	}
	if guard.SecretOf(name, false) != nil {
		s.keeper.Own(fd, nil)
	}
	out.Fh = s.files.Add(&handle{fd: fd, node: s.nodes.Get(c.ID), append: in.Flags&unix.O_APPEND != 0})
	return fuse.OK
}

// noted has f make and hold something, which is the session's own: in a granted directory nobody asks whose it is.
func (s *Server) noted(c *nodes.Node, g askedDir, f func() (int, error)) (int, error) {
	if g.granted {
		return f()
	}
	return s.makings.Make(c.Path, f)
}

// mkdirNew makes a directory that a question has allowed.
func (s *Server) mkdirNew(cancel <-chan struct{}, in *fuse.MkdirIn, g askedDir, name string,
	out *fuse.EntryOut) fuse.Status {
	defer func() { g.done() }()
	c, code := s.mayAppearAt(cancel, &in.InHeader, &g, name, unix.S_IFDIR)
	if code != fuse.OK {
		return code
	}
	fd, err := s.noted(c, g, func() (int, error) {
		if err := unix.Mkdirat(g.fd, name, in.Mode&0o777); err != nil {
			return -1, err
		}
		return names.HoldBeneath(g.fd, name)
	})
	if err != nil {
		return status(err)
	}
	defer unix.Close(fd)
	return s.enterNew(c, fd, in.Mode&0o777, out)
}

// madeHere says whether a gated object is what an answer has allowed to be made: what is seen of it is known already.
func (s *Server) madeHere(n *nodes.Node) bool {
	if n.Base == nil || !s.makings.Any(n.Path) {
		return false
	}
	fd, foreign, _ := s.hold(n)
	defer unix.Close(fd)
	return foreign == "" && s.makings.Has(n.Path, fd)
}

// temporary says whether the name of what was made is one of a file that may be written: it asks nobody any more.
func (s *Server) temporary(p string) bool { return s.opts.Access.Temporary(p) }

// keep is nodes.Table.Keep for what is behind fd. What the session made itself and uses without a question, and what is
// served to it, is kept as that and not as its path: whoever has looked it up goes on with it, whatever gets the name.
// The former is its own: nobody is asked about that, whatever is done.
// When most nodes hold a descriptor it is kept as its path.
func (s *Server) keep(c *nodes.Node, fd int, itself, own bool) *nodes.Node {
	if !itself || s.nodes.Full() { // a file system that does not answer is not asked what it is
		return s.nodes.Keep(c)
	}
	if id, err := names.ID(fd); err == nil {
		c.Own = own
		c.ID = s.nodes.PathID(c.Path, c.Type, fmt.Sprint(id))
		c.FD, _ = s.reopen(fd, unix.O_PATH)
	}
	return s.nodes.Keep(c)
}

// now is where what is kept as itself is by now, or was last.
func (s *Server) now(n *nodes.Node) string {
	rel, _ := names.Beneath(s.procfd, n.FD, n.Base.FD)
	return path.Join(n.Base.Path, rel)
}

// mknodNew makes a FIFO, a socket or a file in a granted directory.
func (s *Server) mknodNew(cancel <-chan struct{}, in *fuse.MknodIn, g askedDir, name string,
	out *fuse.EntryOut) fuse.Status {
	if !g.granted {
		return s.needsTree(cancel, &in.InHeader, g, name)
	}
	c, code := s.mayAppear(cancel, &in.InHeader, g, name, in.Mode&unix.S_IFMT, grants.OpNew)
	if code != fuse.OK {
		return code
	}
	if err := unix.Mknodat(g.fd, name, in.Mode&(unix.S_IFMT|0o777), 0); err != nil {
		return status(err)
	}
	fd, err := names.HoldBeneath(g.fd, name)
	if err != nil {
		return status(err)
	}
	defer unix.Close(fd)
	return s.enterNew(c, fd, in.Mode&0o777, out)
}

// needsTree asks about a name that can be made only where the tree around it is granted for writing. If the answer is
// that, the kernel repeats the walk, which then leads into the mount.
func (s *Server) needsTree(cancel <-chan struct{}, h *fuse.InHeader, g askedDir, name string) fuse.Status {
	_, code := s.mayAppear(cancel, h, g, name, unix.S_IFREG, grants.OpNew)
	switch {
	case code != fuse.OK:
		return code
	case g.Kind == nodes.Gated && s.mountable(g.Node):
		return errno(unix.ESTALE)
	}
	s.tellTree(h, g, name)
	return fuse.EACCES
}

// enterNew gives a new object the mode that was asked for and describes it.
func (s *Server) enterNew(c *nodes.Node, fd int, mode uint32, out *fuse.EntryOut) fuse.Status {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return status(err)
	}
	if st.Mode&unix.S_IFMT != c.Type {
		return errno(unix.ESTALE)
	}
	if err := s.restoreMode(fd, &st, mode); err != nil {
		return status(err)
	}
	own := s.makings.Has(c.Path, fd) && s.temporary(c.Path)
	if s.keep(c, fd, own, own) == nil {
		return fuse.EIO
	}
	out.NodeId = c.ID
	s.fill(&st, &out.Attr)
	return fuse.OK
}
