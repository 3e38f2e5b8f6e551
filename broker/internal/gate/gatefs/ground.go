package gatefs

import (
	"golang.org/x/sys/unix"
	"sbx/broker/internal/gate/fuse"
)

// ground is a directory of the host's in which names are made, moved and removed by answers.
type ground struct {
	*node
	fd      int
	granted bool // all of it was granted for writing: its names ask no more
}

func (g ground) done() {
	if g.granted {
		unix.Close(g.fd)
	}
}

// ground says whether a name in a directory is a matter of answers: in a skeleton each is one of its own. A gated directory asks for itself, and is
// mounted; who had entered it before that, or is in a mount namespace of its own, goes on coming here, and finds what the mount would show.
func (s *Server) ground(cancel <-chan struct{}, h *fuse.InHeader, id uint64, name string) (ground, bool, fuse.Status) {
	n := s.nodes.get(id)
	if n == nil || !validName(name) {
		return ground{}, false, fuse.OK // home says why not
	}
	if n.kind == static && n.dir.Kind == Skeleton && n.dir.Unlisted == AskFirst && n.fd >= 0 && s.opts.Ask != nil && !n.dir.has(name) {
		return ground{node: n, fd: n.fd}, true, fuse.OK
	}
	if n.kind != gated {
		return ground{}, false, fuse.OK
	}
	// What a call for one name has as its header is for the directory in which that is; of a rename's second that is another one.
	at := *h
	at.NodeId = id
	t, code := s.enter(cancel, &at, opCreate)
	switch {
	case code != fuse.OK:
		return ground{}, false, code
	case !t.freely:
		t.done()
		return ground{}, false, fuse.EROFS
	}
	return ground{node: n, fd: t.host, granted: true}, true, fuse.OK
}
