package gatefs

import (
	"golang.org/x/sys/unix"
	"sbx/broker/internal/gate/fuse"
)

// identity is which object of the host something is.
type identity struct{ dev, ino uint64 }

const maxMade = 4096

// noteMade remembers what a question has allowed to be made: its maker may move or remove it again.
func (gt *gate) noteMade(p string, st *unix.Stat_t) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	if gt.made == nil || len(gt.made) >= maxMade {
		gt.made = make(map[string]identity)
	}
	gt.made[p] = identity{st.Dev, st.Ino}
}

func (gt *gate) hasMade(p string, st *unix.Stat_t) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	id, ok := gt.made[p]
	return ok && id == identity{st.Dev, st.Ino}
}

// mayTouch waits for the answer to the removal or replacement of a name, which is a write of what has it.
func (s *Server) mayTouch(cancel <-chan struct{}, h *fuse.InHeader, g ground, name string) (unix.Stat_t, fuse.Status) {
	var st unix.Stat_t
	if err := statName(g.fd, name, &st); err != nil {
		return st, status(err)
	}
	if g.granted || s.gate.hasMade(join(g.node, name), &st) {
		return st, fuse.OK
	}
	_, code := s.mayAppear(cancel, h, g, name, st.Mode&unix.S_IFMT)
	return st, code
}

func join(n *node, name string) string {
	if n.path == "/" {
		return "/" + name
	}
	return n.path + "/" + name
}

// removeAsked removes a name that is not granted when a question has allowed it.
func (s *Server) removeAsked(cancel <-chan struct{}, h *fuse.InHeader, g ground, name string, flags int) fuse.Status {
	if _, code := s.mayTouch(cancel, h, g, name); code != fuse.OK {
		return code
	}
	return status(unix.Unlinkat(g.fd, name, flags))
}

// symlinkAsked makes a link that a question has allowed.
func (s *Server) symlinkAsked(cancel <-chan struct{}, h *fuse.InHeader, g ground, target, name string,
	out *fuse.EntryOut) fuse.Status {
	if _, code := s.mayAppear(cancel, h, g, name, unix.S_IFLNK); code != fuse.OK {
		return code
	}
	if err := unix.Symlinkat(target, g.fd, name); err != nil {
		return status(err)
	}
	return s.lookupGated(cancel, h, g.node, name, out)
}

// renameAsked moves a file or link between names that are not granted: both are asked about, except what was made by
// such an answer. Directories are not moved, as what lies below has rules of its own; EXDEV makes mv copy. In granted
// directories all that is as on the host.
func (s *Server) renameAsked(cancel <-chan struct{}, in *fuse.RenameIn, od ground, oldName string, nd ground,
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
		return fuse.EXDEV
	case typ != unix.S_IFREG && typ != unix.S_IFLNK:
		return fuse.EACCES
	}
	var to unix.Stat_t
	if statName(nd.fd, newName, &to) != nil || !s.gate.hasMade(join(nd.node, newName), &to) {
		if _, code := s.mayAppear(cancel, &in.InHeader, nd, newName, from.Mode&unix.S_IFMT); code != fuse.OK {
			return code
		}
	}
	if err := unix.Renameat2(od.fd, oldName, nd.fd, newName, uint(in.Flags)); err != nil {
		return status(err)
	}
	if s.gate.hasMade(join(od.node, oldName), &from) {
		s.gate.noteMade(join(nd.node, newName), &from)
	}
	return fuse.OK
}
