package gatefs

import (
	"crypto/rand"
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/gate/fuse"
	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/broker/internal/secrets"
)

// A name of a secret says nothing certain: what has it is judged as it was found, each time somebody looks for it. What the session makes itself is its
// own. It is made, moved and removed so that what the host puts in the same place meanwhile is neither destroyed nor taken for the session's.

// candidate says whether a name is one of a secret's.
func (s *Server) candidate(n *node, name string) bool {
	return n.zone != nil && s.verdict(n, name).Secret != nil
}

// finding judges the object behind an O_PATH descriptor, which has the name of a secret in n.
func (s *Server) finding(n *node, name string, fd int) (secrets.Finding, host.Stamp) {
	st, err := host.StampOf(fd, "")
	if err != nil || s.opts.Secrets == nil {
		return secrets.Finding{Hidden: true, Because: secrets.Name}, st
	}
	return s.opts.Secrets.Of(s.opts.Root, strings.TrimPrefix(path.Join(s.nodes.where(n), name), "/"), secrets.Object{
		Stamp: st,
		Read: func(most int) ([]byte, error) {
			open, err := s.reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK)
			if err != nil {
				return nil, err
			}
			defer unix.Close(open)
			return host.PeekAt(open, 0, most)
		},
		Environment: func() bool {
			st, err := host.StampOf(fd, "pyvenv.cfg")
			return err == nil && st.Type == host.File
		},
	}), st
}

// holdShown holds what has the name of a secret, if it may be seen.
func (s *Server) holdShown(n *node, name string) (fd int, st host.Stamp, code fuse.Status) {
	fd, err := holdBeneath(n.fd, name)
	if err != nil {
		return -1, st, status(err)
	}
	f, st := s.finding(n, name, fd)
	if f.Hidden {
		unix.Close(fd)
		if f.Because == secrets.Modified { // git tracks it: to git it must not look as if it had been deleted
			return -1, st, fuse.EACCES
		}
		return -1, st, fuse.ENOENT
	}
	return fd, st, fuse.OK
}

// shows says whether something that has the name of a secret may be seen.
func (s *Server) shows(n *node, name string) bool {
	fd, _, code := s.holdShown(n, name)
	if code == fuse.OK {
		unix.Close(fd)
	}
	return code == fuse.OK
}

// lookupCandidate finds a name of a secret. The kernel keeps no answer: the next one may be another.
func (s *Server) lookupCandidate(h *fuse.InHeader, n *node, name string, out *fuse.EntryOut) fuse.Status {
	fd, _, code := s.holdShown(n, name)
	if code != fuse.OK {
		if s.said.first(path.Join(s.nodes.where(n), name)) {
			s.tellHidden(h, n, name)
		}
		return code
	}
	return s.adopt(n, name, fd, out)
}

// named is the directory and the name by which the kernel knows an object, if the name is a secret's.
func (s *Server) named(n *node) (parent *node, name string, ok bool) {
	s.nodes.mu.RLock()
	parent, name = n.parent, n.name
	s.nodes.mu.RUnlock()
	return parent, name, n.kind == loop && parent != nil && s.candidate(parent, name)
}

// toBeWritten takes an object that the session is about to write to for the session's own. It can be seen, so what it holds is no secret to the session;
// it says whether that may turn out to be needless.
func (s *Server) toBeWritten(n *node, fd int) (maybe bool) {
	parent, name, ok := s.named(n)
	if !ok {
		return false
	}
	s.noteOwn(fd)
	return s.verdict(parent, name).Secret.Holds != nil
}

// written forgets an object of the session's own that holds no secret: it needs no entry to be shown.
func (s *Server) written(h *handle) {
	parent, name, ok := s.named(h.node)
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
		s.ledger().Drop(st)
	}
}

// concealed says whether an object that the kernel knows by the name of a secret is not to be seen any more.
func (s *Server) concealed(n *node, fd int) bool {
	parent, name, ok := s.named(n)
	if !ok {
		return false
	}
	f, _ := s.finding(parent, name, fd)
	return f.Hidden
}

// ledger is the record of what the session made, or nil.
func (s *Server) ledger() *secrets.Ledger {
	if s.opts.Secrets == nil {
		return nil
	}
	return s.opts.Secrets.Own()
}

// noteOwn records an object that the session has made under the name of a secret.
func (s *Server) noteOwn(fd int) {
	if st, err := host.StampOf(fd, ""); err == nil {
		s.ledger().Note(st)
	}
}

// keeping is called before the session changes an object, and what it returns afterwards: what was its own stays so.
func (s *Server) keeping(fd int) func() {
	l := s.ledger()
	if l.Empty() {
		return func() {}
	}
	st, err := host.StampOf(fd, "")
	if err != nil || !l.Has(st) {
		return func() {}
	}
	return func() { s.noteOwn(fd) }
}

// keepingName is keeping for what has a name: it may be the session's own under another one.
func (s *Server) keepingName(n *node, name string) func() {
	if s.ledger().Empty() {
		return func() {}
	}
	fd, err := holdBeneath(n.fd, name)
	if err != nil {
		return func() {}
	}
	after := s.keeping(fd)
	return func() {
		after()
		unix.Close(fd)
	}
}

// occupied words the error of making a name of a secret that something has: what is hidden is not replaced, and that is said.
func (s *Server) occupied(h *fuse.InHeader, n *node, name string, err error) fuse.Status {
	if errors.Is(err, unix.EEXIST) && s.candidate(n, name) && !s.shows(n, name) {
		s.tellKept(h, n, name)
		return fuse.EACCES
	}
	return status(err)
}

// makeFile makes and opens a file that has the name of a secret. Only one that was not there is the session's own.
func (s *Server) makeFile(h *fuse.InHeader, n *node, name string, flags int, mode uint32) (int, fuse.Status) {
	fd, err := openBeneath(n.fd, name, flags|unix.O_CREAT|unix.O_EXCL, mode)
	if errors.Is(err, unix.EEXIST) && flags&unix.O_EXCL == 0 && s.shows(n, name) {
		return -1, errno(unix.ESTALE) // it has come since the kernel looked: it looks again
	}
	if err != nil {
		return -1, s.occupied(h, n, name, err)
	}
	s.noteOwn(fd)
	return fd, fuse.OK
}

// ownLink enters a link that was just made, unless it has been replaced since.
func (s *Server) ownLink(n *node, name, target string, fd int) {
	if text, err := readlink(fd, ""); err == nil && text == target && s.candidate(n, name) {
		s.noteOwn(fd)
	}
}

// takeOut moves the object fd from its name to one that nobody inside can look for, so that it can be moved or removed from there. If the name has gone to
// another object meanwhile, that stays where it is.
func (s *Server) takeOut(n *node, name string, fd int) (aside string, err error) {
	aside = reservedPrefix + rand.Text()
	if err := unix.Renameat2(n.fd, name, n.fd, aside, unix.RENAME_NOREPLACE); err != nil {
		return "", err
	}
	if !sameAs(n.fd, aside, fd) {
		s.putBack(n, aside, name)
		return "", unix.ENOENT
	}
	return aside, nil
}

// putBack undoes takeOut. If the host has used the name since, its file stays, and the other one where nobody sees it.
func (s *Server) putBack(n *node, aside, name string) {
	if err := unix.Renameat2(n.fd, aside, n.fd, name, unix.RENAME_NOREPLACE); err != nil {
		s.log.Printf("putting %q back: %v", name, err)
	}
}

func sameAs(dir int, name string, fd int) bool {
	var a, b unix.Stat_t
	return statName(dir, name, &a) == nil && unix.Fstat(fd, &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// removeCandidate removes what has the name of a secret and may be seen.
func (s *Server) removeCandidate(n *node, name string, flags int) fuse.Status {
	fd, st, code := s.holdShown(n, name)
	if code != fuse.OK {
		return code
	}
	defer unix.Close(fd)
	if isDir := st.Type == host.Dir; isDir != (flags != 0) {
		if isDir {
			return errno(unix.EISDIR)
		}
		return fuse.ENOTDIR
	}
	aside, err := s.takeOut(n, name, fd)
	if err != nil {
		return status(err)
	}
	if err := unix.Unlinkat(n.fd, aside, flags); err != nil {
		s.putBack(n, aside, name)
		return status(err)
	}
	s.ledger().Drop(st)
	return fuse.OK
}

// renameCandidate moves an object of which the old name or the new one is a secret's; what may be done with the names by themselves was judged.
func (s *Server) renameCandidate(h *fuse.InHeader, od *node, oldName string, nd *node, newName string, flags uint32) fuse.Status {
	if flags&unix.RENAME_EXCHANGE != 0 {
		return fuse.EINVAL // mv and editors do without it
	}
	from, fd, code := s.source(od, oldName)
	if code != fuse.OK {
		return code
	}
	defer unix.Close(fd)
	if !s.candidate(nd, newName) {
		err := unix.Renameat2(od.fd, from, nd.fd, newName, uint(flags))
		return s.movedFrom(od, from, oldName, err)
	}
	err := unix.Renameat2(od.fd, from, nd.fd, newName, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) && flags&unix.RENAME_NOREPLACE == 0 {
		err = s.replaceShown(od, from, nd, newName)
	}
	if err == nil && sameAs(nd.fd, newName, fd) {
		s.noteOwn(fd)
	}
	if code := s.movedFrom(od, from, oldName, err); code != fuse.OK {
		return s.occupied(h, nd, newName, unix.Errno(code))
	}
	return fuse.OK
}

// source is where an object is to be moved from: if its name is a secret's, it was taken out of it.
func (s *Server) source(od *node, oldName string) (from string, fd int, code fuse.Status) {
	if !s.candidate(od, oldName) {
		fd, err := holdBeneath(od.fd, oldName)
		return oldName, fd, status(err)
	}
	fd, _, code = s.holdShown(od, oldName)
	if code != fuse.OK {
		return "", -1, code
	}
	from, err := s.takeOut(od, oldName, fd)
	if err != nil {
		unix.Close(fd)
	}
	return from, fd, status(err)
}

// movedFrom puts what was taken out back if it could not be moved.
func (s *Server) movedFrom(od *node, from, oldName string, err error) fuse.Status {
	if err != nil && from != oldName {
		s.putBack(od, from, oldName)
	}
	return status(err)
}

// replaceShown moves an object to the name of a secret that something has which may be seen. The two change places first: had the host replaced that
// meanwhile, its file would be gone.
func (s *Server) replaceShown(od *node, from string, nd *node, newName string) error {
	old, _, code := s.holdShown(nd, newName)
	if code != fuse.OK {
		return unix.EEXIST
	}
	defer unix.Close(old)
	if err := unix.Renameat2(od.fd, from, nd.fd, newName, unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	var st unix.Stat_t
	err := unix.Fstat(old, &st)
	flags := 0
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		flags = unix.AT_REMOVEDIR
	}
	if err == nil && !sameAs(od.fd, from, old) {
		err = unix.EEXIST
	}
	if err == nil {
		err = unix.Unlinkat(od.fd, from, flags)
	}
	if err != nil {
		_ = unix.Renameat2(od.fd, from, nd.fd, newName, unix.RENAME_EXCHANGE)
	}
	return err
}
