//go:build linux

package gatefs

import (
	"path"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// askedDir is a directory of the host's in which names are made, moved and removed by answers.
type askedDir struct {
	*nodes.Node
	fd      int
	own     bool // fd is closed at the end of the request
	granted bool // all of it was granted for writing: its names ask no more
}

func (g askedDir) done() {
	if g.own {
		unix.Close(g.fd)
	}
}

// askedDir says whether a name in a directory is a matter of answers: in a skeleton and in a gated directory each is
// one of its own. One that was granted for writing with all that is in it is mounted; who had entered it before that,
// or is in a mount namespace of its own, goes on coming here, and finds what the mount would show.
func (s *Server) askedDir(cancel <-chan struct{}, h *fuse.InHeader, id uint64, name string) (
	askedDir, bool, fuse.Status) {
	n := s.nodes.Get(id)
	if n == nil || !guard.ValidName(name) {
		return askedDir{}, false, fuse.OK // home says why not
	}
	if s.isHistory(n, name) {
		return askedDir{}, false, fuse.OK
	}
	if n.Kind == nodes.Static && n.Dir.Kind == served.Skeleton && n.Dir.Unlisted == served.AskFirst && s.Grants.Asks() &&
		!s.settles(n, name) {
		if n.FD >= 0 {
			return askedDir{Node: n, fd: n.FD}, true, fuse.OK
		}
		if fd, err := s.openLate(n); err == nil {
			return askedDir{Node: n, fd: fd, own: true}, true, fuse.OK
		}
	}
	if n.Kind != nodes.Gated {
		return askedDir{}, false, fuse.OK
	}
	if !s.mountable(n) {
		fd, foreign, err := s.hold(n)
		if foreign != "" || err != nil {
			unix.Close(fd)
			return askedDir{}, false, fuse.EACCES
		}
		return askedDir{Node: n, fd: fd, own: true}, true, fuse.OK
	}
	// What a call for one name has as its header is for the directory in which that is; of a rename's second that is
	// another one.
	at := *h
	at.NodeId = id
	t, code := s.enter(cancel, &at, grants.OpCreate)
	switch {
	case code != fuse.OK:
		return askedDir{}, false, code
	case !t.freely:
		t.done()
		return askedDir{}, false, fuse.EROFS
	}
	return askedDir{Node: n, fd: t.host, own: t.own, granted: true}, true, fuse.OK
}

// settles is has, less the files whose mounts were taken away.
func (s *Server) settles(n *nodes.Node, name string) bool {
	c, ok := n.Dir.Children[name]
	return n.Dir.Settles(name) && !(ok && c.Kind == served.Bound && !s.Grants.Planned(path.Join(n.Path, name)))
}

// openLate opens the host's directory of a skeleton that it did not have at the start.
func (s *Server) openLate(n *nodes.Node) (int, error) {
	if n.Base == nil || n.Base.FD < 0 {
		return -1, unix.ENOENT
	}
	return names.OpenBeneath(n.Base.FD, n.Rel, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// lacking says whether a name is asked for in a skeleton that the host does not have. It is there for what is mounted
// below it, so for programs it exists: a yes to the name makes it on the host.
func (s *Server) lacking(id uint64, name string) (askedDir, bool) {
	n := s.nodes.Get(id)
	if n == nil || !guard.ValidName(name) || n.Kind != nodes.Static || n.FD >= 0 || n.Base == nil ||
		n.Dir.Kind != served.Skeleton ||
		n.Dir.Unlisted != served.AskFirst || !s.Grants.Asks() || n.Dir.Settles(name) {
		return askedDir{}, false
	}
	fd, err := s.openLate(n)
	if err == nil {
		unix.Close(fd)
	}
	return askedDir{Node: n, fd: -1}, err == unix.ENOENT
}

// askedPlace is askedDir for a file or a directory, which can be made in a directory that the host lacks.
func (s *Server) askedPlace(cancel <-chan struct{}, h *fuse.InHeader, name string) (askedDir, bool, fuse.Status) {
	if g, ok := s.lacking(h.NodeId, name); ok {
		return g, true, fuse.OK
	}
	return s.askedDir(cancel, h, h.NodeId, name)
}

// makeHost makes the host's directory that g lacks.
func (s *Server) makeHost(g askedDir) (askedDir, error) {
	if g.fd >= 0 {
		return g, nil
	}
	err := names.MakeBeneath(g.Base.FD, g.Rel, 0o700)
	if err == nil {
		g.fd, err = s.openLate(g.Node)
		g.own = err == nil
	}
	return g, err
}

// mountable says whether a gated directory was granted with all that is in it, so that the mount says what can be
// written.
func (s *Server) mountable(n *nodes.Node) bool {
	g := s.Grants.Find(objectOf(n), grants.OpCreate)
	return g != nil && !g.Names()
}
