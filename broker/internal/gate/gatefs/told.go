package gatefs

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/gate/fuse"
)

// tellHidden reports that somebody looked for a hidden name which the host has. The kernel keeps the answer, so it is the first one who is told of.
func (s *Server) tellHidden(h *fuse.InHeader, n *node, name string) {
	var st unix.Stat_t
	if s.opts.Refused != nil && n.fd >= 0 && !s.isAgent(h) && !strings.HasPrefix(name, reservedPrefix) && statName(n.fd, name, &st) == nil {
		s.opts.Refused(Request{PID: h.Pid, Op: opLookup.String(), Path: path.Join(s.nodes.where(n), name), Hidden: true})
	}
}

// tellGuarded reports that what has a guarded name was to be changed, and passes the answer on.
func (s *Server) tellGuarded(h *fuse.InHeader, n *node, name string, code fuse.Status) fuse.Status {
	return s.tellChecked(h, n, name, code, nil)
}

// tellChecked is tellGuarded with what Options.Check said.
func (s *Server) tellChecked(h *fuse.InHeader, n *node, name string, code fuse.Status, why error) fuse.Status {
	if s.opts.Refused != nil && n != nil && (n.kind == loop || n.zone != nil) && (code == fuse.EROFS || code == fuse.EACCES) && !s.isAgent(h) {
		s.opts.Refused(Request{PID: h.Pid, Op: opWrite.String(), Path: path.Join(s.nodes.where(n), name), Guarded: true, Why: why})
	}
	return code
}
