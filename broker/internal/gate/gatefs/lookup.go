//go:build linux

package gatefs

import (
	"path"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// Lookup finds a name in a directory: what the tree says about it comes first, then the directory's own nature decides.
func (s *Server) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if code, ok := s.lookupRepeated(h, name, out); ok {
		return code
	}
	n := s.nodes.get(h.NodeId)
	switch {
	case n == nil:
		return errno(unix.ESTALE)
	case !guard.ValidName(name):
		return errno(names.Invalid(name))
	case n.kind == gated:
		return s.lookupGated(cancel, h, n, name, out)
	case n.kind == loop:
		return s.lookupLoop(h, n, name, out)
	}
	if made := s.madeHabit(n, name); made != nil {
		return s.lookupLoop(h, made, name, out)
	}
	if sub := n.dir.subs[name]; sub != nil {
		s.nodes.keep(sub)
		return s.enterStatic(sub, out)
	}
	if c, ok := n.dir.children[name]; ok {
		return s.lookupChild(cancel, h, n, c, out)
	}
	switch {
	case n.dir.Kind == served.Guarded:
		return s.lookupLoop(h, n, name, out)
	case n.dir.Unlisted == served.AskFirst && (n.fd >= 0 || n.base != nil && n.base.fd >= 0):
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

func (s *Server) enterStatic(n *node, out *fuse.EntryOut) fuse.Status {
	out.NodeId = n.id
	out.SetEntryTimeout(forever)
	out.SetAttrTimeout(s.attrValid(n))
	if n.dir.Kind == served.Guarded {
		return s.statFd(n.fd, &out.Attr)
	}
	s.fillSkeleton(n.dir, &out.Attr)
	return fuse.OK
}

func (s *Server) lookupChild(cancel <-chan struct{}, h *fuse.InHeader, n *node, c served.Child,
	out *fuse.EntryOut) fuse.Status {
	switch c.Kind {
	case served.Hidden:
		if s.habit(n, c.Name) { // there may be one of the session's own later, so the kernel keeps no answer
			if s.said.First(path.Join(n.path, c.Name)) {
				s.tellHidden(h, n, c.Name)
			}
			return fuse.ENOENT
		}
		s.tellHidden(h, n, c.Name)
		return absent(out)
	case served.Symlink, served.Covered:
		p, mode := path.Join(n.path, c.Name), c.FileMode()
		own := &node{kind: gated, typ: mode & unix.S_IFMT, path: p, fd: -1, base: n, rel: c.Name, id: s.nodes.pathID(p,
			mode&unix.S_IFMT, c.Target)}
		if s.nodes.keep(own) == nil {
			return fuse.EIO
		}
		out.NodeId = own.id
		out.Attr = fuse.Attr{Ino: own.id, Mode: mode, Nlink: 1, Size: uint64(len(c.Target)),
			Owner: fuse.Owner{Uid: s.opts.Owner.UID, Gid: s.opts.Owner.GID}}
		out.SetEntryTimeout(forever)
		out.SetAttrTimeout(forever)
		return fuse.OK
	}
	return s.lookupGated(cancel, h, n, c.Name, out)
}

// lookupLoop finds a name of a guarded directory on the host.
func (s *Server) lookupLoop(h *fuse.InHeader, n *node, name string, out *fuse.EntryOut) fuse.Status {
	if n.zone == nil {
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
	fd, err := names.HoldBeneath(n.fd, name) // and no look alone: the host would give its number to another file
	if err != nil {
		return status(err)
	}
	var st unix.Stat_t
	c, err := s.taken(n, name, fd, &st)
	if err != nil {
		return status(err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 && s.linked(n, name) {
		s.Forget(c.id, 1)
		s.tellHidden(h, n, name)
		return absent(out)
	}
	s.markLent(c)
	rely := s.saw(watched, seen, name, c)
	c.doubted.Store(!rely) // the kernel has asked, and will ask again
	code := s.enterLoop(c, &st, out)
	if rely {
		out.SetEntryTimeout(s.opts.Rely)
	}
	return code
}

// adopt enters the object fd, found under name, and describes it to the kernel. It owns fd.
func (s *Server) adopt(n *node, name string, fd int, out *fuse.EntryOut) fuse.Status {
	var st unix.Stat_t
	c, err := s.taken(n, name, fd, &st)
	if err != nil {
		return status(err)
	}
	return s.enterLoop(c, &st, out)
}

func (s *Server) taken(n *node, name string, fd int, st *unix.Stat_t) (*node, error) {
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
	c := s.nodes.hold(key, fd, st.Mode&unix.S_IFMT, n, name)
	s.pruneIfFull()
	return c, nil
}

// keyOf is the key of what is no directory.
func (s *Server) keyOf(n *node, name string, st *unix.Stat_t) loopKey {
	key := loopKey{ID: guard.ID{Dev: st.Dev, Ino: st.Ino}}
	switch v := s.verdict(n, name); v.Action {
	case guard.Guard:
		key.ro, key.config = true, st.Mode&unix.S_IFMT == unix.S_IFREG && n.zone.Git() && guard.Config(name)
	case guard.Check, guard.Index:
		key.ro, key.mode = true, st.Mode&unix.S_IFMT == unix.S_IFREG
		key.config = key.mode && v.Action == guard.Check
	case guard.Text:
		key.text = true
	default:
		key.ro = v.Anchored // a file where a directory of guarded names is looked for could lead to others
	}
	return key
}

// linked says whether a file that has several names is another name of a secret. What tools unpack they link.
func (s *Server) linked(n *node, name string) bool {
	return s.opts.Linked != nil && !n.zone.Git() && !n.zone.Packed() && s.opts.Linked(path.Join(s.pathOf(n), name))
}

// config says whether a node is a repository's configuration, which is read without its credentials.
func (s *Server) config(n *node) bool {
	return n.key.config || n.kind == gated && n.typ == unix.S_IFREG && s.opts.Config != nil && s.opts.Config(n.path)
}

// dirKey is the key of an open directory. One with a HEAD is a repository by itself for git, whatever its name.
func (s *Server) dirKey(n *node, name string, fd int) (loopKey, error) {
	id, err := names.ID(fd)
	if err != nil {
		return loopKey{}, err
	}
	v := s.verdict(n, name)
	key := loopKey{ID: id, zone: s.holds(n, name).Below(name), ro: v.Action == guard.Guard || v.Action == guard.Check}
	var head unix.Stat_t
	if !s.opts.Session.Own(id) && names.Stat(fd, "HEAD", &head) == nil {
		key.zone = key.zone.Repository()
	}
	return key, nil
}

func (s *Server) enterLoop(c *node, st *unix.Stat_t, out *fuse.EntryOut) fuse.Status {
	out.NodeId = c.id
	s.describe(c, c.fd, st, &out.Attr)
	out.SetAttrTimeout(s.attrValid(c))
	if c.typ == unix.S_IFDIR {
		if s.opts.Repeat != nil {
			s.watch(c)
		}
		out.SetEntryTimeout(dirValid)
	} else {
		out.SetEntryTimeout(time.Duration(0))
	}
	return fuse.OK
}
