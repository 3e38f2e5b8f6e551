//go:build linux

package gatefs

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// named is a name in a directory, for the keeper. Its row is there if it is a secret's.
func (s *Server) named(n *nodes.Node, name string) names.Name {
	var row *guard.Secret
	if n.Zone != nil {
		row = s.verdict(n, name).Secret
	}
	below := func() string { return strings.TrimPrefix(path.Join(s.nodes.Where(n), name), "/") }
	return names.Name{Dir: n.FD, Base: name, Top: s.opts.Root, Path: below, Row: row}
}

// candidate says whether a name is one of a secret's.
func (s *Server) candidate(n *nodes.Node, name string) bool {
	return n.Zone != nil && s.verdict(n, name).Secret != nil
}

// shows says whether something that has the name of a secret may be seen.
func (s *Server) shows(n *nodes.Node, name string) bool { return s.keeper.Shows(s.named(n, name)) }

// lookupCandidate finds a name of a secret. The kernel keeps no answer: the next one may be another.
func (s *Server) lookupCandidate(h *fuse.InHeader, n *nodes.Node, name string, out *fuse.EntryOut) fuse.Status {
	fd, _, err := s.keeper.Hold(s.named(n, name))
	if err != nil {
		if s.said.First(path.Join(s.nodes.Where(n), name)) {
			s.tellHidden(h, n, name)
		}
		return status(err)
	}
	return s.adopt(n, name, fd, out)
}

// knownAs is the directory and the name by which the kernel knows an object, if the name is a secret's.
func (s *Server) knownAs(n *nodes.Node) (parent *nodes.Node, name string, ok bool) {
	parent, name = s.nodes.NameOf(n)
	return parent, name, n.Kind == nodes.Loop && parent != nil && s.candidate(parent, name)
}

// toBeWritten takes an object that the session is about to write to for the session's own. It can be seen, so what it
// holds is no secret to the session; it says whether that may turn out to be needless.
func (s *Server) toBeWritten(n *nodes.Node, fd int) (maybe bool) {
	parent, name, ok := s.knownAs(n)
	if !ok {
		return false
	}
	s.keeper.Own(fd, nil)
	return s.verdict(parent, name).Secret.Holds != nil
}

// written forgets an object of the session's own that holds no secret: it needs no entry to be shown.
func (s *Server) written(h *handle) {
	parent, name, ok := s.knownAs(h.node)
	if !ok {
		return
	}
	row := s.verdict(parent, name).Secret
	fd, err := s.reopen(h.fd, unix.O_RDONLY)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	head, err := host.PeekAt(fd, 0, guard.HeadSize)
	if st, serr := host.StampOf(fd, ""); err == nil && serr == nil && row.Holds != nil && !row.Holds(head) {
		s.keeper.Ledger().Drop(st)
	}
}

// concealed says whether an object that the kernel knows by the name of a secret is not to be seen any more.
func (s *Server) concealed(n *nodes.Node, fd int) bool {
	parent, name, ok := s.knownAs(n)
	if !ok {
		return false
	}
	f, _ := s.keeper.Finding(s.named(parent, name), fd)
	return f.Hidden
}

// keepingName is called before the session changes what has a name, and what it returns afterwards: it may be the
// session's own under another name, and stays so.
func (s *Server) keepingName(n *nodes.Node, name string) func() {
	return s.keeper.KeepingName(s.named(n, name))
}

// occupied words the error of making a name of a secret that something has: what is hidden is not replaced, and that is
// said.
func (s *Server) occupied(h *fuse.InHeader, n *nodes.Node, name string, err error) fuse.Status {
	if errors.Is(err, unix.EEXIST) && s.candidate(n, name) && !s.shows(n, name) {
		s.tellKept(h, n, name)
		return fuse.EACCES
	}
	return status(err)
}

// makeFile makes and opens a file that has the name of a secret. Only one that was not there is the session's own.
func (s *Server) makeFile(h *fuse.InHeader, n *nodes.Node, name string, flags int, mode uint32) (int, fuse.Status) {
	fd, err := names.OpenBeneath(n.FD, name, flags|unix.O_CREAT|unix.O_EXCL, mode)
	if errors.Is(err, unix.EEXIST) && flags&unix.O_EXCL == 0 && s.shows(n, name) {
		return -1, errno(unix.ESTALE) // it has come since the kernel looked: it looks again
	}
	if err != nil {
		return -1, s.occupied(h, n, name, err)
	}
	s.keeper.Own(fd, nil)
	return fd, fuse.OK
}

// ownLink enters a link that was just made, unless it has been replaced since.
func (s *Server) ownLink(n *nodes.Node, name, target string, fd int) {
	if text, err := names.Readlink(fd, ""); err == nil && text == target && s.candidate(n, name) {
		s.keeper.Own(fd, nil)
	}
}

// renameCandidate moves an object of which the old name or the new one is a secret's; what may be done with the names
// by themselves was judged.
func (s *Server) renameCandidate(h *fuse.InHeader, m move, flags uint32) fuse.Status {
	if flags&unix.RENAME_EXCHANGE != 0 {
		return fuse.EINVAL // mv and editors do without it
	}
	err := s.keeper.Rename(s.named(m.from, m.oldName), s.named(m.to, m.newName), uint(flags))
	return s.occupied(h, m.to, m.newName, err)
}
