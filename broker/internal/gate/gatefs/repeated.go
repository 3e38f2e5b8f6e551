//go:build linux

package gatefs

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
)

// What repeats has done is answered here: nothing is done, and whoever is in a directory keeps it.

// entered says whether the kernel has the directory that has a name now, by that name: somebody may be in it. It
// stays so while the kernel holds dir to change it, as it does for whoever repeats, until that is answered.
func (s *Server) entered(dir *nodes.Node, name string) bool {
	if dir.FD < 0 || dir.Zone == nil || names.Type(dir.FD, name) != unix.S_IFDIR {
		return false
	}
	fd, err := names.HoldBeneath(dir.FD, name)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	key, err := s.dirKey(dir, name, fd)
	if err != nil {
		return false
	}
	return s.nodes.Has(key, dir, name)
}

// repeating is what is being done again, if the request comes from whoever does that.
func (s *Server) repeating(h *fuse.InHeader) *repeat {
	if h.Pid != 0 {
		return nil
	}
	return s.repeats.now.Load()
}

// lookupRepeated answers for a name that is to come or to go; ok is false for others.
func (s *Server) lookupRepeated(h *fuse.InHeader, name string, out *fuse.EntryOut) (code fuse.Status, ok bool) {
	r := s.repeating(h)
	switch {
	case r == nil:
		return 0, false
	case h.NodeId == nodes.RootID && name == elsewhere:
		s.standIn(s.repeats.away, unix.S_IFDIR, out)
		return fuse.OK, true
	case r.isTaken(s, h.NodeId, name):
		return s.lookupLoop(h, s.nodes.Get(h.NodeId), name, out), true
	case h.NodeId == r.dir.ID && name == r.name && r.what == names.Made:
		return fuse.ENOENT, true
	case h.NodeId == r.dir.ID && name == r.name && (r.what == names.Removed || r.what == names.Moved):
		s.standIn(r.left(s), r.typ, out)
		return fuse.OK, true
	case r.what == names.Moved && h.NodeId == r.to.ID && name == r.toName:
		if r.instead == nil {
			return fuse.ENOENT, true
		}
		s.standIn(r.instead, r.instead.Type, out)
		return fuse.OK, true
	case h.NodeId == r.dir.ID && name == r.name:
		if !s.stillHas(r) || s.lookupLoop(h, r.dir, name, out) != fuse.OK || out.NodeId == 0 {
			*out = fuse.EntryOut{}
			s.standIn(r.node, r.typ, out)
		}
		return fuse.OK, true
	}
	return 0, false
}

// isTaken says whether a name that something happened to has a directory in which somebody may be. To that it has not
// happened; whatever the kernel were told of it but the truth, it would forget the directory under him.
func (r *repeat) isTaken(s *Server, dir uint64, name string) bool {
	switch {
	case dir == r.dir.ID && name == r.name:
		return s.entered(r.dir, name)
	case r.what == names.Moved && dir == r.to.ID && name == r.toName:
		return s.entered(r.to, name)
	}
	return false
}

// left is what had a name, nil if the kernel has that by another one since.
func (r *repeat) left(s *Server) *nodes.Node {
	if r.node != nil && r.typ == unix.S_IFDIR && !s.nodes.Has(r.node.Key, r.dir, r.name) {
		return nil
	}
	return r.node
}

// stillHas says whether a name still leads to what something happened to, and that is known to the kernel: who watches
// its directory hears of a stand-in as well.
func (s *Server) stillHas(r *repeat) bool {
	var st unix.Stat_t
	switch {
	case r.node != nil:
		return names.Is(r.dir.FD, r.name, r.node.Key.ID)
	case names.Stat(r.dir.FD, r.name, &st) != nil:
		return false
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return true
	}
	return s.nodes.Find(s.keyOf(r.dir, r.name, &st)) != nil
}

// standIn describes what had a name: the object that the kernel knew by it, so that who watches that hears of it, or
// one that nobody knows.
func (s *Server) standIn(n *nodes.Node, typ uint32, out *fuse.EntryOut) {
	n = s.nodes.StandIn(n, typ)
	out.NodeId = n.ID
	out.Attr = s.standInAttr(n)
}

// standInAttr says of what has lost its name what is true of it: the kernel takes what is beyond the size from whoever
// has it mapped (SIGBUS).
func (s *Server) standInAttr(n *nodes.Node) (out fuse.Attr) {
	if n.FD >= 0 && s.statNode(n, n.FD, &out) != fuse.OK || n.FD < 0 && !s.statHeld(n, &out) {
		out = fuse.Attr{Ino: n.ID}
	}
	out.Mode, out.Nlink = n.Type|0o600, 1
	out.Owner = fuse.Owner{Uid: s.opts.Owner.UID, Gid: s.opts.Owner.GID}
	return out
}

// astray answers whoever repeats where the path of what he repeats leads to another directory by now: what he does
// there would be done in earnest.
const astray = fuse.Status(unix.ESTALE)

// madeRepeated describes what has got a name: what the host has there now, if it is of that type and may be seen; ok
// is false for others. A file may have grown since it was looked at, and the kernel would believe the size in this
// answer, whatever it was told meanwhile: who has the file open would read no further.
func (s *Server) madeRepeated(h *fuse.InHeader, name string, typ uint32,
	out *fuse.EntryOut) (code fuse.Status, ok bool) {
	r := s.repeating(h)
	switch {
	case r == nil:
		return 0, false
	case r.what != names.Made || h.NodeId != r.dir.ID || name != r.name:
		return astray, true
	}
	if typ != unix.S_IFREG && s.lookupLoop(h, r.dir, name, out) == fuse.OK && out.NodeId != 0 {
		if out.Attr.Mode&unix.S_IFMT == typ {
			return fuse.OK, true
		}
		s.Forget(out.NodeId, 1)
	}
	*out = fuse.EntryOut{}
	s.standIn(nil, typ, out)
	return fuse.OK, true
}

// removedRepeated and movedRepeated answer for a name that has gone; ok is false for others.
func (s *Server) removedRepeated(h *fuse.InHeader, name string) (code fuse.Status, ok bool) {
	r := s.repeating(h)
	switch {
	case r == nil:
		return 0, false
	case r.what != names.Removed || h.NodeId != r.dir.ID || name != r.name:
		return astray, true
	case r.isTaken(s, h.NodeId, name):
		return fuse.EBUSY, true
	}
	return fuse.OK, true
}

func (s *Server) movedRepeated(h *fuse.InHeader, name string, to uint64, toName string) (code fuse.Status, ok bool) {
	r := s.repeating(h)
	switch {
	case r == nil:
		return 0, false
	case r.what != names.Moved || h.NodeId != r.dir.ID || name != r.name || to != r.to.ID || toName != r.toName:
		return astray, true
	case r.isTaken(s, h.NodeId, name) || r.isTaken(s, to, toName):
		return fuse.EBUSY, true
	}
	if c := r.left(s); c != nil {
		s.nodes.Moved(c.Key, r.to, toName)
	}
	return fuse.OK, true
}

// setRepeated says whether attributes are set for those alone who watch.
func (s *Server) setRepeated(in *fuse.SetAttrIn) bool {
	r := s.repeating(&in.InHeader)
	return r != nil && (r.what == names.Modified || r.what == names.Attributes) &&
		in.Valid&(fuse.FATTR_SIZE|fuse.FATTR_MODE|fuse.FATTR_UID|fuse.FATTR_GID) == 0
}

// openRepeated says whether a file is opened for those alone who watch.
func (s *Server) openRepeated(h *fuse.InHeader) bool {
	r := s.repeating(h)
	return r != nil && r.what == names.Written
}
