//go:build linux

package gatefs

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// verdict is what the judge says of a name in a guarded directory.
func (s *Server) verdict(n *nodes.Node, name string) guard.Verdict {
	if names.IsReserved(name) {
		return guard.Verdict{Action: guard.Hide}
	}
	v, _ := s.opts.Session.Rule(s.holds(n, name), name, guard.Dir{Own: func() bool { return s.isOwn(n) },
		Path:       func() string { return s.pathOf(n) },
		Repository: func() bool { return s.inOwnRepository(n) }})
	return v
}

// pathOf is where a directory is for whoever looks at it outside.
func (s *Server) pathOf(n *nodes.Node) string { return path.Join(s.opts.Root, s.nodes.Where(n)) }

// holds is what holds in a guarded directory for a name. One of packages, in which most is free, may have got another
// name since it was looked up, and whoever has it open goes on to use it. Where it is now the kernel knows, whoever
// moved it. One that was none may have become a repository (see dirKey).
func (s *Server) holds(n *nodes.Node, name string) *guard.Place {
	if !n.Zone.Git() && n.Zone.MentionsRepository(name) && !s.isOwn(n) && names.Type(n.FD, "HEAD") != 0 {
		return n.Zone.Repository()
	}
	if !n.Zone.Packed() {
		return n.Zone
	}
	top, _ := s.nodes.Below(n)
	if !top.Zone.Unpacks(n.Zone) { // there are packages all around
		return n.Zone
	}
	if p := names.PlaceNow(s.procfd, n.FD, top.FD, top.Zone); !p.Packed() {
		return p
	}
	return n.Zone
}

// hidden says whether a name does not exist, whatever has it. Of a name of a secret that is another question.
func hidden(v guard.Verdict) bool { return v.Action == guard.Hide }

// making is how something gets a name.
type making uint8

const (
	byMkdir  making = iota // an empty directory
	byCreate               // an empty file, whose writes come here
	byMove                 // a file or directory that exists
	byLink                 // a symbolic link
	byOther                // a pipe, a socket, a second name
)

// mayMake reports whether something new may get the name. A directory made by mkdir is empty, so it may stand where
// guarded names lie below; anything else there would be unvetted.
func (s *Server) mayMake(n *nodes.Node, name string, how making) fuse.Status {
	code := s.judgeMaking(n, name, how)
	if code == fuse.OK {
		s.noteMaking(n, name, how)
	}
	return code
}

func (s *Server) judgeMaking(n *nodes.Node, name string, how making) fuse.Status {
	if n.Dir != nil && n.Dir.Settles(name) {
		if c, ok := n.Dir.Children[name]; ok && c.Kind == served.Hidden {
			return fuse.EACCES
		}
		return fuse.EBUSY
	}
	v := s.verdict(n, name)
	switch {
	case hidden(v):
		return fuse.EACCES
	case v.Action == guard.Guard && how == byMkdir && v.Mkdir:
		return fuse.OK
	case v.Action == guard.Text && (how == byMkdir || how == byCreate):
		return fuse.OK
	case v.Action == guard.Keep && (how == byCreate || how == byMove) && names.IsFile(n.FD, name):
		return fuse.OK
	case v.Action == guard.Text:
		return fuse.EACCES
	case v.Action != guard.Free:
		return fuse.EROFS
	case v.Anchored && how != byMkdir, v.Chosen && how == byLink:
		return fuse.EACCES
	case how == byLink && !s.isOwn(n) && s.opts.Session.WasThere(n.Key.ID, name):
		return fuse.EACCES
	}
	return fuse.OK
}

// mayLink reports whether a symbolic link in the directory may hold text.
func (s *Server) mayLink(n *nodes.Node, text string) fuse.Status {
	if !n.Zone.MayLink(text) && !s.isOwn(n) {
		return fuse.EACCES
	}
	return fuse.OK
}

// mayTakeLink reports whether a symbolic link that is there may get the name.
func (s *Server) mayTakeLink(n *nodes.Node, name string, dir int, base string) fuse.Status {
	text, err := names.Readlink(dir, base)
	if err != nil {
		return status(err)
	}
	if code := s.mayLink(n, text); code != fuse.OK {
		return code
	}
	return s.mayMake(n, name, byLink)
}

// noteMaking tells of a name that is about to be made, written or taken away.
func (s *Server) noteMaking(n *nodes.Node, name string, how making) {
	rel := path.Join(s.nodes.Where(n), name)
	s.opts.Session.Note(guard.Naming{Place: s.holds(n, name), Name: name, Mkdir: how == byMkdir,
		Rel: strings.TrimPrefix(rel, "/"), Path: path.Join(s.opts.Root, rel),
		Dir: func() (guard.ID, int) { return n.Key.ID, n.FD }})
}

// mayTake reports whether what has the name may lose it.
func (s *Server) mayTake(n *nodes.Node, name string, isDir bool) fuse.Status {
	if n.Dir != nil && n.Dir.Settles(name) {
		return fuse.EBUSY
	}
	v := s.verdict(n, name)
	switch {
	case hidden(v):
		return fuse.ENOENT
	case v.Secret != nil && !s.shows(n, name):
		return fuse.ENOENT
	case v.Action == guard.Text, v.Action == guard.Index:
		return fuse.OK
	case v.Action != guard.Free, v.Anchored && !isDir:
		return fuse.EROFS
	}
	return fuse.OK
}

// writeText writes to a file that says where git finds a repository: once, at its beginning, and all of it, so that
// what is there was found harmless as a whole.
func (s *Server) writeText(h *handle, data []byte, off int64) (int, error) {
	defer s.Still()() // what it says is judged for the place where it is
	s.texts.Lock()
	defer s.texts.Unlock()
	alone := s.opts.Session.Alone(true)
	if alone == nil {
		return 0, unix.EAGAIN
	}
	defer alone()
	var st unix.Stat_t
	if err := unix.Fstat(h.fd, &st); err != nil {
		return 0, err
	}
	if st.Size != 0 || off != 0 && !h.append {
		return 0, unix.EACCES
	}
	if !s.harmless(h.node, data) {
		return 0, unix.EACCES
	}
	defer s.expectAt(h.node, unix.IN_MODIFY)()
	return unix.Pwrite(h.fd, data, 0)
}

// ownText says of the text of a configuration whether it is the session's.
func (s *Server) ownText(n *nodes.Node) func([]byte) bool {
	return func(text []byte) bool { return s.opts.Guard != nil && s.opts.Guard.Made(s.nodes.Where(n), text) }
}

// harmless says whether a file whose contents count may hold text.
func (s *Server) harmless(n *nodes.Node, text []byte) bool {
	_, name := s.nodes.NameOf(n)
	if ok, settled := guard.Says(name, text); settled {
		return ok
	}
	return names.MayLead(s.opts.Granted, s.pathOf(n), text, s.opts.Session)
}
