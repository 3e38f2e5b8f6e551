//go:build linux

package gatefs

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/guard"
)

// What the session makes is its own, see guard.Session.

// isOwn says whether a directory is the session's own.
func (s *Server) isOwn(n *nodes.Node) bool {
	return n.Kind == nodes.Loop && s.opts.Session.Own(n.Key.ID)
}

// inOwnRepository says whether one of the session's own directories, up from n, is the work tree of a repository: it
// was made there, too.
func (s *Server) inOwnRepository(n *nodes.Node) bool {
	for n != nil && s.isOwn(n) {
		if guard.WorkTree(func(rel string) bool { return names.IsFile(n.FD, rel) }) {
			return true
		}
		n, _ = s.nodes.NameOf(n)
	}
	return false
}

// noteMkdir remembers a directory that the session has made in n.
func (s *Server) noteMkdir(n *nodes.Node, name string, id guard.ID) {
	s.opts.Session.Mkdir(s.holds(n, name), s.verdict(n, name), n.Key.ID, name, id)
}

// noteGone remembers that the directory with that identity has left its name for another.
func (s *Server) noteGone(m move, id guard.ID) {
	s.opts.Session.Left(m.from.Key.ID, m.oldName, id, func() bool {
		return names.Free(m.to.FD, m.newName, m.from.Zone.Below(m.oldName))
	})
}

// takes says whether a directory gets to where one was before that is not the session's own, or where one is looked
// for.
func (s *Server) takes(n *nodes.Node, name string, id guard.ID) bool {
	if s.opts.Session.Takes(n.Key.ID, s.pathOf(n), name, id) {
		return true
	}
	there, err := names.IDAt(n.FD, name)
	return err == nil && there != id && !s.isOwn(n) && names.Type(n.FD, name) == unix.S_IFDIR &&
		!s.opts.Session.Own(there)
}

// mayMoveOwn says whether the session's own directory may get another name. Where it takes the place of one that is not
// the session's it has to be without names that are guarded, and is then guarded like that: its directories are added
// to demote. Else EXDEV makes mv copy, and the copies are judged one by one. So has one that leaves a directory of
// packages, where those names are free. s.judging is held, so that no name is made in it meanwhile.
func (s *Server) mayMoveOwn(m move, takes bool, demote *[]guard.ID) fuse.Status {
	to := s.holds(m.to, m.newName)
	if !s.isOwn(m.to) && !to.Ordinary() {
		return fuse.EXDEV
	}
	was, below := s.holds(m.from, m.oldName).Below(m.oldName), to.Below(m.newName)
	if s.keeper.Reveals(names.Leaving{Dir: m.from.FD, Base: m.oldName, Top: s.opts.Root,
		Path: strings.TrimPrefix(path.Join(s.nodes.Where(m.from), m.oldName), "/"), From: was, To: below,
		Own: s.opts.Session.Own}) {
		return fuse.EXDEV // of what is not the session's own in it
	}
	if !takes {
		if !below.Unpacks(was) {
			return fuse.OK
		}
		demote = nil
	}
	return mayFill(m.from, m.oldName, below, demote)
}

// mayMoveTheirs is mayMoveOwn for a directory that is not the session's own. What the session made in it may be: that,
// and what is in a repository's directory, was judged for the place where it is.
func (s *Server) mayMoveTheirs(m move, takes bool, demote *[]guard.ID) fuse.Status {
	below := s.holds(m.to, m.newName).Below(m.newName)
	switch {
	case !s.holds(m.from, m.oldName).Below(m.oldName).Alike(below):
		return fuse.EXDEV
	case takes || below.Git() || below.Chosen():
		if !takes {
			demote = nil
		}
		return mayFill(m.from, m.oldName, below, demote)
	case names.LeadsOut(m.from.FD, m.oldName):
		return fuse.EXDEV
	}
	return fuse.OK
}

// mayFill says whether what is in a directory may lie in a place. Its directories are added to demote, if there is one.
func mayFill(od *nodes.Node, oldName string, below *guard.Place, demote *[]guard.ID) fuse.Status {
	ids, plain := names.Plain(od.FD, oldName, below)
	if !plain {
		return fuse.EXDEV
	}
	if demote != nil {
		*demote = append(*demote, ids...)
	}
	return fuse.OK
}
