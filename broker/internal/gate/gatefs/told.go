//go:build linux

package gatefs

import (
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
)

// tellHidden reports that somebody looked for a hidden name which the host has. The kernel keeps the answer, so it is
// the first one who is told of.
func (s *Server) tellHidden(h *fuse.InHeader, n *node, name string) {
	var st unix.Stat_t
	if s.opts.Refused != nil && n.fd >= 0 && !s.isAgent(h) && !names.IsReserved(name) &&
		names.Stat(n.fd, name, &st) == nil {
		s.opts.Refused(grants.Request{PID: h.Pid, Op: grants.OpLookup.String(), Path: path.Join(s.nodes.where(n), name),
			Hidden: true})
	}
}

// tellKept reports that something was to be made where the host has what is hidden: that stays as it is.
func (s *Server) tellKept(h *fuse.InHeader, n *node, name string) {
	if s.opts.Refused != nil && !s.isAgent(h) {
		s.opts.Refused(grants.Request{PID: h.Pid, Op: grants.OpWrite.String(), Path: path.Join(s.nodes.where(n), name),
			Kept: true})
	}
}

// tellTree reports that something was to be made where names are granted one by one, which cannot be.
func (s *Server) tellTree(h *fuse.InHeader, g askedDir, name string) {
	if s.opts.Refused != nil && !s.isAgent(h) {
		s.opts.Refused(grants.Request{PID: h.Pid, Op: grants.OpCreate.String(), Path: join(g.node, name), Tree: true})
	}
}

// tellGuarded reports that what has a guarded name was to be changed, and passes the answer on.
func (s *Server) tellGuarded(h *fuse.InHeader, n *node, name string, code fuse.Status) fuse.Status {
	return s.tellChecked(h, n, name, code, nil)
}

// tellChecked is tellGuarded with what Options.Check said.
func (s *Server) tellChecked(h *fuse.InHeader, n *node, name string, code fuse.Status, why error) fuse.Status {
	if s.opts.Refused != nil && n != nil && (n.kind == loop || n.zone != nil) && (code == fuse.EROFS ||
		code == fuse.EACCES) && !s.isAgent(h) {
		s.opts.Refused(grants.Request{PID: h.Pid, Op: grants.OpWrite.String(), Path: path.Join(s.nodes.where(n), name),
			Guarded: true, Why: why})
	}
	return code
}
