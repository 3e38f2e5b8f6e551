//go:build linux

package gatefs

import (
	"crypto/rand"
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/guard"
)

// move is a rename, of one name in a guarded directory to another.
type move struct {
	from    *nodes.Node
	oldName string
	to      *nodes.Node
	newName string
}

// reversed is the other half of an exchange.
func (m move) reversed() move { return move{m.to, m.newName, m.from, m.oldName} }

// Rename moves or exchanges names inside the guarded directories.
func (s *Server) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if in.Flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return fuse.EINVAL
	}
	if code, ok := s.movedRepeated(&in.InHeader, oldName, in.Newdir, newName); ok {
		return code
	}
	from, asked, code := s.askedDir(cancel, &in.InHeader, in.NodeId, oldName)
	defer from.done()
	// before the first is told: the kernel repeats the call once
	to, also, second := s.askedDir(cancel, &in.InHeader, in.Newdir, newName)
	defer to.done()
	switch {
	case code != fuse.OK:
		return code
	case second != fuse.OK:
		return second
	case asked && also:
		return s.renameAsked(cancel, in, from, oldName, to, newName)
	case asked || also:
		return fuse.EXDEV // the copy is asked about
	}
	od, code := s.existing(in.NodeId, oldName)
	if code != fuse.OK {
		return code
	}
	nd, code := s.home(in.Newdir, newName)
	if code != fuse.OK {
		return code
	}
	m := move{od, oldName, nd, newName}
	var moved unix.Stat_t
	if err := names.Stat(m.from.FD, m.oldName, &moved); err != nil {
		return status(err)
	}
	done := s.alone(m, in.Flags, &moved)
	if done == nil {
		return fuse.EXDEV
	}
	defer done()
	defer s.expectRename(m)()
	var demote []guard.ID
	if code := s.mayMove(m, &moved, &demote); code != fuse.OK {
		if what, ok := s.checked(m.to, m.newName); ok && code == fuse.EROFS && in.Flags&unix.RENAME_EXCHANGE == 0 {
			code, why := s.replaceChecked(m, what, &moved, uint(in.Flags))
			// the kernel may rely on the file under its old name, and does under the new one
			if code == fuse.OK && m.from != m.to {
				go s.fuse.EntryNotify(m.to.ID, m.newName) // waits until the kernel has moved the name
			}
			return s.tellMore(&in.InHeader, m.to, m.newName, code, grants.Request{Why: why})
		}
		return s.tellGuarded(&in.InHeader, m.to, m.newName, code)
	}
	undo := s.opts.Session.Demote(demote)
	if code = s.carryRename(in, m, &moved); code != fuse.OK {
		undo()
	}
	return code
}

// alone has nobody else judge what a rename depends on, nor another session where directories move or it counts where
// they are. What is moved is looked at again then. Nil: that cannot be had, or a directory is elsewhere by now.
func (s *Server) alone(m move, flags uint32, moved *unix.Stat_t) (done func()) {
	moves := moved.Mode&unix.S_IFMT == unix.S_IFDIR || flags&unix.RENAME_EXCHANGE != 0
	still := s.judging.RUnlock
	if moves {
		s.judging.Lock()
		still = s.judging.Unlock
	} else {
		s.judging.RLock()
	}
	_, checked := s.checked(m.to, m.newName)
	turn := moves || checked || m.to.Zone.Waits(m.newName)
	free := s.opts.Session.Alone(turn)
	switch {
	case free == nil:
	case !turn || s.stays(m.from) && s.stays(m.to) && names.Stat(m.from.FD, m.oldName, moved) == nil:
		return func() { free(); still() }
	default:
		free()
	}
	still()
	return nil
}

// carryRename does what was judged.
func (s *Server) carryRename(in *fuse.RenameIn, m move, moved *unix.Stat_t) fuse.Status {
	defer s.keepingName(m.from, m.oldName)()
	defer s.keepingName(m.to, m.newName)()
	if s.candidate(m.from, m.oldName) || s.candidate(m.to, m.newName) {
		code := s.renameCandidate(&in.InHeader, m, in.Flags)
		if code == fuse.OK {
			s.noteMoved(m.to, m.newName, moved)
		}
		return code
	}
	if in.Flags&unix.RENAME_EXCHANGE != 0 {
		return s.exchange(m, moved)
	}
	gone, err := names.IDAt(m.from.FD, m.oldName)
	replaced, _ := names.IDAt(m.to.FD, m.newName) // none if there is nothing
	if err == nil {
		err = unix.Renameat2(m.from.FD, m.oldName, m.to.FD, m.newName, uint(in.Flags))
	}
	if err != nil {
		return status(err)
	}
	if s.swapped(m, moved) {
		return fuse.EXDEV
	}
	if moved.Mode&unix.S_IFMT == unix.S_IFDIR {
		s.noteGone(m, gone)
		if replaced != (guard.ID{}) {
			s.opts.Session.Removed(m.to.Key.ID, m.newName, replaced)
		}
	}
	s.noteMoved(m.to, m.newName, moved)
	return fuse.OK
}

// exchange swaps two names.
func (s *Server) exchange(m move, moved *unix.Stat_t) fuse.Status {
	var other unix.Stat_t
	if err := names.Stat(m.to.FD, m.newName, &other); err != nil {
		return status(err)
	}
	var demote []guard.ID
	if code := s.mayMove(m.reversed(), &other, &demote); code != fuse.OK {
		return code
	}
	undo := s.opts.Session.Demote(demote)
	code := s.exchangeJudged(m, moved, &other)
	if code != fuse.OK {
		undo()
	}
	return code
}

func (s *Server) exchangeJudged(m move, moved, other *unix.Stat_t) fuse.Status {
	a, err := names.IDAt(m.from.FD, m.oldName)
	if err != nil {
		return status(err)
	}
	b, err := names.IDAt(m.to.FD, m.newName)
	if err != nil {
		return status(err)
	}
	if err := names.MayExchange(s.opts.Session, s.named(m.from, m.oldName), s.named(m.to, m.newName)); err != nil {
		return status(err)
	}
	if err := unix.Renameat2(m.from.FD, m.oldName, m.to.FD, m.newName, unix.RENAME_EXCHANGE); err != nil {
		return status(err)
	}
	if moved.Mode&unix.S_IFMT == unix.S_IFDIR {
		s.noteGone(m, a)
	}
	if other.Mode&unix.S_IFMT == unix.S_IFDIR {
		s.noteGone(m.reversed(), b)
	}
	s.noteMoved(m.to, m.newName, moved)
	s.noteMoved(m.from, m.oldName, other)
	return fuse.OK
}

// noteMoved notes where an object is now.
func (s *Server) noteMoved(n *nodes.Node, name string, st *unix.Stat_t) {
	key := s.keyOf(n, name, st)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		fd, err := names.HoldBeneath(n.FD, name)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		if key, err = s.dirKey(n, name, fd); err != nil {
			return
		}
	}
	s.nodes.Moved(key, n, name)
}

// mayMove reports whether an object may leave one name for another. A directory takes everything below it along, so
// both places must treat every path below alike; EXDEV makes mv copy, and the copies are judged one by one. What is the
// session's own and is not there any more is added to demote.
func (s *Server) mayMove(m move, st *unix.Stat_t, demote *[]guard.ID) fuse.Status {
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if code := s.mayTake(m.from, m.oldName, isDir); code != fuse.OK {
		return code
	}
	s.noteMaking(m.from, m.oldName, byMove)
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return s.mayTakeLink(m.to, m.newName, m.from.FD, m.oldName)
	}
	if !isDir {
		return s.mayMake(m.to, m.newName, byMove)
	}
	if s.verdict(m.from, m.oldName).Anchored {
		return fuse.EBUSY
	}
	if code := s.mayMake(m.to, m.newName, byMove); code != fuse.OK {
		return code
	}
	id, err := names.IDAt(m.from.FD, m.oldName)
	if err != nil {
		return status(err)
	}
	takes := s.takes(m.to, m.newName, id)
	if takes {
		rel := path.Join(s.nodes.Where(m.to), m.newName)
		names.Come(s.opts.Session.Witness, m.from.FD, m.oldName, strings.TrimPrefix(rel, "/"),
			path.Join(s.opts.Root, rel))
	}
	if s.opts.Session.Own(id) {
		return s.mayMoveOwn(m, takes, demote)
	}
	return s.mayMoveTheirs(m, takes, demote)
}

// swapped undoes a move in which a directory, or a link that may not be there, has taken the place of what was judged.
// The kernel's locks exclude that, except where the source directory is also mounted natively, or by another session.
func (s *Server) swapped(m move, st *unix.Stat_t) bool {
	var now unix.Stat_t
	from, to := s.holds(m.from, m.oldName).Below(m.oldName), s.holds(m.to, m.newName).Below(m.newName)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR || names.Stat(m.to.FD, m.newName, &now) != nil {
		return false
	}
	switch typ := now.Mode & unix.S_IFMT; {
	case typ == unix.S_IFDIR && !from.Alike(to):
	case typ == unix.S_IFLNK && s.mayTakeLink(m.to, m.newName, m.to.FD, m.newName) != fuse.OK:
	default:
		return false
	}
	// the old name has been taken meanwhile
	if unix.Renameat2(m.to.FD, m.newName, m.from.FD, m.oldName, unix.RENAME_NOREPLACE) != nil {
		// out of sight; a free name in the same directory cannot fail
		_ = unix.Renameat(m.to.FD, m.newName, m.to.FD, names.Reserved+rand.Text())
	}
	return true
}

// checked says whether a rename onto a name depends on the contents, and by which action.
func (s *Server) checked(n *nodes.Node, name string) (guard.Action, bool) {
	what := s.verdict(n, name).Action
	return what, what.Checked() && !(n.Dir != nil && n.Dir.Settles(name)) && s.opts.Guard != nil
}

// replaceChecked carries out a rename onto a checked name. The caller may still hold the old file open for writing, so
// what is put in place is a new file with exactly the bytes that were checked; the kernel finds its new number at the
// next lookup. The error is the check's own.
func (s *Server) replaceChecked(m move, what guard.Action, st *unix.Stat_t, flags uint) (fuse.Status, error) {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fuse.EACCES, nil
	}
	if code := s.mayTake(m.from, m.oldName, false); code != fuse.OK {
		return code, nil
	}
	err := names.Replace(s.named(m.from, m.oldName), s.named(m.to, m.newName), what, st.Mode&0o777, flags,
		func(present, proposed []byte) error {
			return s.opts.Guard.Check(s.nodes.Where(m.to)+"/"+m.newName, what, present, proposed)
		})
	var refused names.Refused
	if errors.As(err, &refused) {
		return fuse.EACCES, refused.Err
	}
	return status(err), nil
}
