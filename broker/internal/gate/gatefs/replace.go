//go:build linux

package gatefs

import (
	"path"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
)

// mayTouch waits for the answer to the removal or replacement of a name, which is a write of what has it.
func (s *Server) mayTouch(cancel <-chan struct{}, h *fuse.InHeader, g askedDir, name string) (
	unix.Stat_t, fuse.Status) {
	var st unix.Stat_t
	if err := names.Stat(g.fd, name, &st); err != nil {
		return st, status(err)
	}
	if g.granted || s.makings.HasAt(path.Join(g.Node.Path, name), g.fd, name) {
		return st, fuse.OK
	}
	_, code := s.mayAppear(cancel, h, g, name, st.Mode&unix.S_IFMT, grants.OpNew)
	return st, code
}

// removeAsked removes a name that is not granted when a question has allowed it.
func (s *Server) removeAsked(cancel <-chan struct{}, h *fuse.InHeader, g askedDir, name string, flags int) fuse.Status {
	if _, code := s.mayTouch(cancel, h, g, name); code != fuse.OK {
		return code
	}
	err := unix.Unlinkat(g.fd, name, flags)
	if err == nil && flags != 0 {
		s.nodes.Renew(path.Join(g.Node.Path, name))
	}
	return status(err)
}

// symlinkAsked makes a link that a question has allowed.
func (s *Server) symlinkAsked(cancel <-chan struct{}, h *fuse.InHeader, g askedDir, target, name string,
	out *fuse.EntryOut) fuse.Status {
	if _, code := s.mayAppear(cancel, h, g, name, unix.S_IFLNK, grants.OpNew); code != fuse.OK {
		return code
	}
	if err := unix.Symlinkat(target, g.fd, name); err != nil {
		return status(err)
	}
	return s.lookupGated(cancel, h, g.Node, name, out)
}

// mayReplace waits for the answer to the name that something gets by a rename.
func (s *Server) mayReplace(cancel <-chan struct{}, in *fuse.RenameIn, nd askedDir, name string,
	typ uint32) fuse.Status {
	if s.makings.HasAt(path.Join(nd.Node.Path, name), nd.fd, name) {
		return fuse.OK
	}
	_, code := s.mayAppear(cancel, &in.InHeader, nd, name, typ, grants.OpNew)
	return code
}

// moveDir moves a directory between names that are not granted. What lies in one has rules of its own, so one that is
// not empty is moved only where both names are granted with all below them; else EXDEV makes mv copy, and the copies
// are asked about.
func (s *Server) moveDir(cancel <-chan struct{}, in *fuse.RenameIn, od askedDir, oldName string, nd askedDir,
	newName string, st *unix.Stat_t) fuse.Status {
	if code := s.mayReplace(cancel, in, nd, newName, unix.S_IFDIR); code != fuse.OK {
		return code
	}
	from, to := path.Join(od.Node.Path, oldName), path.Join(nd.Node.Path, newName)
	made := s.makings.HasAt(from, od.fd, oldName)
	var err error
	if s.opts.Access.Moves(from, to) {
		err = unix.Renameat2(od.fd, oldName, nd.fd, newName, uint(in.Flags))
	} else {
		err = names.MoveEmpty(names.Name{Dir: od.fd, Base: oldName}, names.Name{Dir: nd.fd, Base: newName}, st.Mode,
			uint(in.Flags))
	}
	if err == nil && made {
		s.makings.NoteAt(to, nd.fd, newName)
	}
	if err == nil { // the kernel knows it by the number of its old name
		s.nodes.Renew(from)
		s.nodes.Renew(to)
		go s.fuse.EntryNotify(nd.ID, newName) // waits until the kernel has moved the name
	}
	return status(err)
}

// renameAsked moves an object between names that are not granted: both are asked about, except what was made by such an
// answer. In granted directories all that is as on the host.
func (s *Server) renameAsked(cancel <-chan struct{}, in *fuse.RenameIn, od askedDir, oldName string, nd askedDir,
	newName string) fuse.Status {
	switch {
	case od.granted && nd.granted:
		return status(unix.Renameat2(od.fd, oldName, nd.fd, newName, uint(in.Flags)))
	case od.granted || nd.granted:
		return fuse.EXDEV
	case in.Flags&^unix.RENAME_NOREPLACE != 0:
		return fuse.EINVAL
	}
	from, code := s.mayTouch(cancel, &in.InHeader, od, oldName)
	switch typ := from.Mode & unix.S_IFMT; {
	case code != fuse.OK:
		return code
	case typ == unix.S_IFDIR:
		return s.moveDir(cancel, in, od, oldName, nd, newName, &from)
	case typ != unix.S_IFREG && typ != unix.S_IFLNK:
		return fuse.EACCES
	}
	typ := names.Type(nd.fd, newName)
	if typ == unix.S_IFLNK && from.Mode&unix.S_IFMT == unix.S_IFREG {
		return fuse.EACCES // the file that was granted is where the link leads
	}
	if code := s.mayReplace(cancel, in, nd, newName, from.Mode&unix.S_IFMT); code != fuse.OK {
		return code
	}
	return status(s.makings.Move(path.Join(od.Node.Path, oldName), path.Join(nd.Node.Path, newName), func() error {
		return names.Move(names.Name{Dir: od.fd, Base: oldName}, names.Name{Dir: nd.fd, Base: newName}, uint(in.Flags),
			typ == 0)
	}))
}
