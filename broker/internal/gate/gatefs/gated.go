//go:build linux

package gatefs

import (
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
)

// sight is how much of a gated object a request may see.
type sight uint8

const (
	veiled  sight = iota // its type
	plainly              // the host object, read-only
	freely               // the host object, for this request as it was asked
	itself               // the same of what the node is kept as, see Server.keep
)

// admit decides about a request for a gated object that is neither a lookup nor about an open file. A thread that had
// to wait gets ESTALE: the kernel repeats its walk, which now crosses into the mount.
func (s *Server) admit(cancel <-chan struct{}, h *fuse.InHeader, n *nodes.Node, o grants.Op) (sight, fuse.Status) {
	if n.Type == unix.S_IFLNK { // where a link leads is judged at its target
		return plainly, fuse.OK
	}
	if s.isAgent(h) {
		return veiled, fuse.OK
	}
	if n.Own && o != grants.OpExec && s.temporary(s.now(n)) {
		return itself, fuse.OK
	}
	dir := n.Type == unix.S_IFDIR
	if o == grants.OpStat || o == grants.OpAccess {
		if (s.opts.Stat == StatType || s.opts.Walk && dir || s.blind(h.Pid, n, o)) && !s.granted(n) {
			if s.madeHere(n) {
				return plainly, fuse.OK
			}
			return veiled, fuse.OK
		}
	}
	g, waited, code := s.permission(cancel, h, n, o)
	if code != fuse.OK {
		return veiled, code
	}
	if g == nil {
		return freely, fuse.OK
	}
	if s.Grants.SendBack(g, h.Pid, waited) {
		return veiled, errno(unix.ESTALE)
	}
	// served, or reached through a directory that was entered before the mount
	if g.Mode() == grants.RW && s.Grants.Answered(g) {
		return freely, fuse.OK
	}
	return plainly, fuse.OK
}

func (s *Server) granted(n *nodes.Node) bool {
	return s.Grants.Find(objectOf(n), grants.OpLookup) != nil
}

// object is what answers are about.
func objectOf(n *nodes.Node) grants.Object { return grants.Object{Path: n.Path, Type: n.Type} }

// permission is Grants.Permission for a request.
func (s *Server) permission(cancel <-chan struct{}, h *fuse.InHeader, n *nodes.Node,
	o grants.Op) (g *grants.Grant, waited bool, code fuse.Status) {
	return s.Grants.Permission(cancel, h.Pid, objectOf(n), o)
}

// blind reports whether a request of a walker is answered without a question: stat(2) of what it has just seen listed
// tells the type, which the listing told as well.
func (s *Server) blind(pid uint32, n *nodes.Node, o grants.Op) bool {
	return (o == grants.OpStat || o == grants.OpAccess) && s.Grants.Walks(path.Dir(n.Path), pid)
}

// listed notes that a thread reads the names of a directory that asks.
func (s *Server) listed(n *nodes.Node, pid uint32) {
	skeleton := n.Kind == nodes.Static && n.Dir.Kind == served.Skeleton
	if pid == 0 || !skeleton && n.Kind != nodes.Gated {
		return
	}
	s.Grants.Listed(n.Path, pid)
}

// lookupGated finds a name in a gated directory, or a gated name in a skeleton. The kernel holds the directory's lock
// if it has no entry for the name yet; then nothing may be waited for, and the call that the lookup is for will ask.
// Otherwise this is a revalidation, which holds no lock and can wait for the answer and the mount.
func (s *Server) lookupGated(cancel <-chan struct{}, h *fuse.InHeader, n *nodes.Node, name string,
	out *fuse.EntryOut) fuse.Status {
	c := below(n, name)
	if n.Kind == nodes.Gated && !s.opts.Walk && !s.isAgent(h) {
		if code := s.stepInto(cancel, h, n); code != fuse.OK {
			return code
		}
	}
	if c.Base.FD < 0 {
		return fuse.ENOENT
	}
	is := s.opts.Access.Secrecy(h.Pid, c.Path)
	known := !s.isAgent(h) && s.nodes.Known(s.nodes.PathID(c.Path, unix.S_IFREG, ""))
	if code := s.Grants.Named(cancel, h.Pid, c.Path, is, known); code != fuse.OK {
		if is == grants.Secret && s.opts.Refused != nil && !s.isAgent(h) {
			s.opts.Refused(grants.Request{PID: h.Pid, Op: grants.OpLookup.String(), Path: c.Path, Hidden: true})
		}
		return code
	}
	fd, foreign, own, err := -1, "", false, error(nil)
	s.makings.ReadStable(func() {
		unix.Close(fd)
		fd, foreign, err = s.hold(c)
		own = err == nil && s.makings.Has(c.Path, fd)
	})
	switch {
	case foreign != "" && foreign != c.Path:
		return s.intoForeign(cancel, h, c, foreign)
	case err != nil:
		return status(err)
	}
	defer unix.Close(fd)
	typ, ino, target, err := names.Inspect(fd)
	if err != nil {
		return status(err)
	}
	c.Type = typ
	c.ID = s.nodes.PathID(c.Path, c.Type, target)
	seen, valid := plainly, dirValid
	if own = own && s.temporary(c.Path); own { // no call that follows asks
		seen, valid = itself, 0
	} else if c.Type != unix.S_IFLNK {
		var code fuse.Status
		seen, valid, code = s.judge(cancel, h, c, fd)
		if code != fuse.OK {
			return code
		}
	}
	if seen == veiled || foreign != "" {
		if !s.statHeld(s.nodes.Get(c.ID), &out.Attr) {
			s.typeOnly(ino, c, &out.Attr)
		}
	} else if code := s.statNode(c, fd, &out.Attr); code != fuse.OK {
		return code
	}
	if s.keep(c, fd, seen == itself, own) == nil {
		return fuse.EIO
	}
	out.NodeId = c.ID
	out.SetEntryTimeout(valid)
	return fuse.OK
}

// below is the gated object of a name in a directory.
func below(n *nodes.Node, name string) *nodes.Node {
	c := &nodes.Node{Kind: nodes.Gated, FD: -1, Path: path.Join(n.Path, name), Base: n, Rel: name}
	if n.Kind == nodes.Gated || n.FD < 0 && n.Base != nil {
		c.Base, c.Rel = n.Base, n.Rel+"/"+name
	}
	return c
}

// hold opens the host's object of a gated node, unless that lies below the mount point of a foreign file system, which
// it names.
func (s *Server) hold(c *nodes.Node) (fd int, foreign string, err error) {
	fd, err = names.OpenBeneath(c.Base.FD, c.Rel, unix.O_PATH|unix.O_NOFOLLOW, 0, unix.RESOLVE_NO_XDEV)
	if err != unix.EXDEV {
		return fd, "", err
	}
	if foreign = s.opts.Access.Foreign(c.Path); foreign != "" && foreign != c.Path {
		return -1, foreign, err
	}
	fd, err = names.HoldBeneath(c.Base.FD, c.Rel)
	return fd, foreign, err
}

// intoForeign asks for a foreign file system that a walk enters. Nothing below it is ever served.
func (s *Server) intoForeign(cancel <-chan struct{}, h *fuse.InHeader, c *nodes.Node, point string) fuse.Status {
	rel := strings.TrimSuffix(c.Rel, strings.TrimPrefix(c.Path, point))
	if s.isAgent(h) || !strings.HasPrefix(c.Path, point+"/") || rel == c.Rel || rel == "" {
		return fuse.EACCES
	}
	m := &nodes.Node{Kind: nodes.Gated, Type: unix.S_IFDIR, FD: -1, Path: point, Base: c.Base, Rel: rel,
		ID: s.nodes.PathID(point, unix.S_IFDIR, "")}
	if code := s.stepInto(cancel, h, m); code != fuse.OK {
		return code
	}
	return fuse.EACCES
}

// stepInto asks for a gated directory that is walked through.
func (s *Server) stepInto(cancel <-chan struct{}, h *fuse.InHeader, n *nodes.Node) fuse.Status {
	g, waited, code := s.permission(cancel, h, n, grants.OpBelow)
	if code != fuse.OK {
		return code
	}
	if g != nil && s.Grants.SendBack(g, h.Pid, waited) {
		return errno(unix.ESTALE)
	}
	return fuse.OK
}

// refuseSocket ends the first lookup of a socket in a gated directory, which cannot wait: connect(2) asks nothing more.
func (s *Server) refuseSocket(h *fuse.InHeader, c *nodes.Node) fuse.Status {
	if s.opts.Refused != nil {
		s.opts.Refused(grants.Request{PID: h.Pid, Op: grants.OpLookup.String(), Path: c.Path, Socket: true})
	}
	return fuse.EACCES
}

// judge decides what a lookup of a gated name shows and for how long. A denial is not told here: an error would make
// the kernel drop the entry; the call that follows gets it.
func (s *Server) judge(cancel <-chan struct{}, h *fuse.InHeader, c *nodes.Node,
	fd int) (sight, time.Duration, fuse.Status) {
	known := s.nodes.Known(c.ID) && !s.isAgent(h)
	// A lookup does not say what it is for; the call that follows does, except connect(2), which is none of the file
	// system's.
	free := s.opts.Stat == StatType || s.opts.Walk && c.Type != unix.S_IFSOCK
	for {
		g := s.Grants.Find(objectOf(c), grants.OpLookup)
		waited := false
		if g == nil || !g.Ready() {
			if !known && c.Type == unix.S_IFSOCK && !s.isAgent(h) && c.Base != nil && strings.ContainsRune(c.Rel, '/') {
				return veiled, 0, s.refuseSocket(h, c)
			}
			if !known || g == nil && free {
				return veiled, 0, fuse.OK
			}
			var code fuse.Status
			g, waited, code = s.permission(cancel, h, c, grants.OpLookup)
			switch {
			case code == fuse.EINTR || code == errno(unix.ESTALE):
				return veiled, 0, code
			case code != fuse.OK:
				return veiled, 0, fuse.OK
			case g == nil:
				return plainly, 0, fuse.OK
			}
		}
		switch {
		case g.Path() != c.Path && waited && !g.Served():
			return veiled, 0, errno(unix.ESTALE) // the mount is on a directory this walk has passed
		case g.Path() != c.Path:
			return plainly, 0, fuse.OK
		case c.Type == unix.S_IFDIR:
			return plainly, forever, fuse.OK
		case g.Served(): // a rename may give the name to another file
			return itself, 0, fuse.OK
		case !known || !s.Grants.Refresh(g, fd):
			return plainly, dirValid, fuse.OK
		}
	}
}
