//go:build linux

package gatefs

import (
	"path"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// Lookup finds a name in a directory: what the tree says about it comes first, then the directory's own nature decides.
func (s *Server) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if code, ok := s.lookupRepeated(h, name, out); ok {
		return code
	}
	n := s.nodes.Get(h.NodeId)
	switch {
	case n == nil:
		return errno(unix.ESTALE)
	case !guard.ValidName(name):
		return errno(names.Invalid(name))
	case n.Kind == nodes.Gated:
		return s.lookupGated(cancel, h, n, name, out)
	case n.Kind == nodes.Loop:
		return s.lookupLoop(h, n, name, out)
	}
	if made := s.madeHistory(n, name); made != nil {
		return s.lookupLoop(h, made, name, out)
	}
	if sub := n.Dir.Subs[name]; sub != nil {
		s.nodes.Keep(sub)
		return s.enterStatic(sub, out)
	}
	if c, ok := n.Dir.Children[name]; ok {
		return s.lookupChild(cancel, h, n, c, out)
	}
	switch {
	case n.Dir.Kind == served.Guarded:
		return s.lookupLoop(h, n, name, out)
	case n.Dir.Unlisted == served.AskFirst && (n.FD >= 0 || n.Base != nil && n.Base.FD >= 0):
		return s.lookupGated(cancel, h, n, name, out)
	}
	return absent(out)
}

// absent is a negative entry the kernel may keep: the description says so and descriptions do not change.
func absent(out *fuse.EntryOut) fuse.Status {
	*out = fuse.EntryOut{}
	out.SetEntryTimeout(forever)
	return fuse.OK
}

func (s *Server) enterStatic(n *nodes.Node, out *fuse.EntryOut) fuse.Status {
	out.NodeId = n.ID
	out.SetEntryTimeout(forever)
	out.SetAttrTimeout(s.attrValid(n))
	if n.Dir.Kind == served.Guarded {
		return s.statFd(n.FD, &out.Attr)
	}
	s.fillSkeleton(n.Dir, &out.Attr)
	return fuse.OK
}

func (s *Server) lookupChild(cancel <-chan struct{}, h *fuse.InHeader, n *nodes.Node, c served.Child,
	out *fuse.EntryOut) fuse.Status {
	switch c.Kind {
	case served.Hidden:
		if s.isHistory(n, c.Name) { // there may be one of the session's own later, so the kernel keeps no answer
			if s.said.First(path.Join(n.Path, c.Name)) {
				s.tellHidden(h, n, c.Name)
			}
			return fuse.ENOENT
		}
		s.tellHidden(h, n, c.Name)
		return absent(out)
	case served.Symlink, served.Covered:
		p, mode := path.Join(n.Path, c.Name), c.FileMode()
		own := &nodes.Node{Kind: nodes.Gated, Type: mode & unix.S_IFMT, Path: p, FD: -1, Base: n, Rel: c.Name,
			ID: s.nodes.PathID(p, mode&unix.S_IFMT, c.Target)}
		if s.nodes.Keep(own) == nil {
			return fuse.EIO
		}
		out.NodeId = own.ID
		out.Attr = fuse.Attr{Ino: own.ID, Mode: mode, Nlink: 1, Size: uint64(len(c.Target)),
			Owner: fuse.Owner{Uid: s.opts.Owner.UID, Gid: s.opts.Owner.GID}}
		out.SetEntryTimeout(forever)
		out.SetAttrTimeout(forever)
		return fuse.OK
	}
	return s.lookupGated(cancel, h, n, c.Name, out)
}

// lookupLoop finds a name of a guarded directory on the host.
func (s *Server) lookupLoop(h *fuse.InHeader, n *nodes.Node, name string, out *fuse.EntryOut) fuse.Status {
	if n.Zone == nil {
		return fuse.ENOTDIR
	}
	switch v := s.verdict(n, name); {
	case hidden(v):
		s.tellHidden(h, n, name)
		return absent(out)
	case v.Secret != nil:
		return s.lookupCandidate(h, n, name, out)
	}
	watched, seen := s.watch(n)
	fd, err := names.HoldBeneath(n.FD, name) // and no look alone: the host would give its number to another file
	if err != nil {
		return status(err)
	}
	var st unix.Stat_t
	c, err := s.taken(n, name, fd, &st)
	if err != nil {
		return status(err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 && s.linked(n, name) {
		s.Forget(c.ID, 1)
		s.tellHidden(h, n, name)
		return absent(out)
	}
	s.markLent(c)
	rely := s.saw(watched, seen, name, c)
	c.Doubted.Store(!rely) // the kernel has asked, and will ask again
	code := s.enterLoop(c, &st, out)
	if rely {
		out.SetEntryTimeout(s.rely)
	}
	return code
}

// adopt enters the object fd, found under name, and describes it to the kernel. It owns fd.
func (s *Server) adopt(n *nodes.Node, name string, fd int, out *fuse.EntryOut) fuse.Status {
	var st unix.Stat_t
	c, err := s.taken(n, name, fd, &st)
	if err != nil {
		return status(err)
	}
	return s.enterLoop(c, &st, out)
}

func (s *Server) taken(n *nodes.Node, name string, fd int, st *unix.Stat_t) (*nodes.Node, error) {
	if err := unix.Fstat(fd, st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	key := s.keyOf(n, name, st)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		var err error
		if key, err = s.dirKey(n, name, fd); err != nil {
			unix.Close(fd)
			return nil, err
		}
	}
	c := s.nodes.Hold(key, fd, st.Mode&unix.S_IFMT, n, name)
	s.pruneIfFull()
	return c, nil
}

// keyOf is the key of what is no directory.
func (s *Server) keyOf(n *nodes.Node, name string, st *unix.Stat_t) nodes.Key {
	key := nodes.Key{ID: guard.ID{Dev: st.Dev, Ino: st.Ino}}
	switch v := s.verdict(n, name); v.Action {
	case guard.Guard:
		key.ReadOnly, key.Config = true, st.Mode&unix.S_IFMT == unix.S_IFREG && n.Zone.Git() && guard.Config(name)
	case guard.Check, guard.Index:
		key.ReadOnly, key.Mode = true, st.Mode&unix.S_IFMT == unix.S_IFREG
		key.Config = key.Mode && v.Action == guard.Check
	case guard.Text:
		key.Text = true
	default:
		key.ReadOnly = v.Anchored // a file where a directory of guarded names is looked for could lead to others
	}
	return key
}

// linked says whether a file that has several names is another name of a secret. What tools unpack they link.
func (s *Server) linked(n *nodes.Node, name string) bool {
	return s.opts.Guard != nil && !n.Zone.Git() && !n.Zone.Packed() && s.opts.Guard.Linked(path.Join(s.pathOf(n), name))
}

// config says whether a node is a repository's configuration, which is read without its credentials.
func (s *Server) config(n *nodes.Node) bool {
	return n.Key.Config || n.Kind == nodes.Gated && n.Type == unix.S_IFREG && s.opts.Access.Config(n.Path)
}

// dirKey is the key of an open directory. One with a HEAD is a repository by itself for git, whatever its name.
func (s *Server) dirKey(n *nodes.Node, name string, fd int) (nodes.Key, error) {
	id, err := names.ID(fd)
	if err != nil {
		return nodes.Key{}, err
	}
	v := s.verdict(n, name)
	key := nodes.Key{ID: id, Zone: s.holds(n, name).Below(name),
		ReadOnly: v.Action == guard.Guard || v.Action == guard.Check}
	var head unix.Stat_t
	if !s.opts.Session.Own(id) && names.Stat(fd, "HEAD", &head) == nil {
		key.Zone = key.Zone.Repository()
	}
	return key, nil
}

func (s *Server) enterLoop(c *nodes.Node, st *unix.Stat_t, out *fuse.EntryOut) fuse.Status {
	out.NodeId = c.ID
	s.describe(c, c.FD, st, &out.Attr)
	out.SetAttrTimeout(s.attrValid(c))
	if c.Type == unix.S_IFDIR {
		if s.opts.Repeat != nil {
			s.watch(c)
		}
		out.SetEntryTimeout(dirValid)
	} else {
		out.SetEntryTimeout(time.Duration(0))
	}
	return fuse.OK
}
