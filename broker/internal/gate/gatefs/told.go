//go:build linux

package gatefs

import (
	"path"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
)

// tell reports what was refused of a place, but to the agent.
func (s *Server) tell(h *fuse.InHeader, p string, r grants.Request) {
	if s.opts.Refused != nil && !s.isAgent(h) {
		r.PID, r.Path = h.Pid, p
		s.opts.Refused(r)
	}
}

// tellHidden reports that somebody looked for a hidden name which the host has. The kernel keeps the answer, so it is
// the first one who is told of.
func (s *Server) tellHidden(h *fuse.InHeader, n *nodes.Node, name string) {
	if n.FD >= 0 && !names.IsReserved(name) && names.Has(n.FD, name) {
		s.tell(h, path.Join(s.nodes.Where(n), name), grants.Request{Op: grants.OpLookup.String(), Hidden: true})
	}
}

// tellKept reports that something was to be made where the host has what is hidden: that stays as it is.
func (s *Server) tellKept(h *fuse.InHeader, n *nodes.Node, name string) {
	s.tell(h, path.Join(s.nodes.Where(n), name), grants.Request{Op: grants.OpWrite.String(), Kept: true})
}

// tellTree reports that something was to be made where names are granted one by one, which cannot be.
func (s *Server) tellTree(h *fuse.InHeader, g askedDir, name string) {
	s.tell(h, path.Join(g.Node.Path, name), grants.Request{Op: grants.OpCreate.String(), Tree: true})
}

// tellGuarded reports that what has a guarded name was to be changed, and passes the answer on.
func (s *Server) tellGuarded(h *fuse.InHeader, n *nodes.Node, name string, code fuse.Status) fuse.Status {
	return s.tellMore(h, n, name, code, grants.Request{})
}

// tellMore is tellGuarded with what else r says of it.
func (s *Server) tellMore(h *fuse.InHeader, n *nodes.Node, name string, code fuse.Status,
	r grants.Request) fuse.Status {
	if n != nil && (n.Kind == nodes.Loop || n.Zone != nil) && (code == fuse.EROFS || code == fuse.EACCES) {
		r.Op, r.Guarded = grants.OpWrite.String(), true
		s.tell(h, path.Join(s.nodes.Where(n), name), r)
	}
	return code
}
