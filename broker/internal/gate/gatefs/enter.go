//go:build linux

package gatefs

import (
	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// target is the object of one request.
type target struct {
	*nodes.Node
	host   int  // its host object, O_PATH; -1 where there is none
	own    bool // host is closed at the end of the request
	veiled bool // not granted: only its type may be told
	freely bool // allowed for this request
}

func (t target) done() {
	if t.own {
		unix.Close(t.host)
	}
}

// writable reports whether the object itself may be changed. Names in a directory have rulings of their own.
func (t target) writable() bool {
	switch t.Kind {
	case nodes.Loop:
		return !t.ReadOnly
	case nodes.Static:
		return t.Dir.Kind == served.Guarded && t.Zone.Open()
	}
	return t.freely
}

// enter finds the object of a request and, if it is gated, waits for permission.
func (s *Server) enter(cancel <-chan struct{}, h *fuse.InHeader, o grants.Op) (target, fuse.Status) {
	n := s.nodes.Get(h.NodeId)
	if n == nil {
		return target{}, errno(unix.ESTALE)
	}
	if n.Kind == nodes.Loop && n.FD < 0 {
		return s.openAgain(n)
	}
	if n.Kind != nodes.Gated {
		return target{Node: n, host: n.FD}, fuse.OK
	}
	seen, code := s.admit(cancel, h, n, o)
	if code != fuse.OK {
		return target{}, code
	}
	if seen == veiled {
		if o == grants.OpStat || o == grants.OpAccess {
			return target{Node: n, host: -1, veiled: true}, fuse.OK
		}
		if o != grants.OpReadlink {
			return target{}, fuse.EACCES
		}
	}
	if n.FD >= 0 {
		if seen != itself && s.now(n) != n.Path {
			return target{}, errno(unix.ESTALE)
		}
		return target{Node: n, host: n.FD, veiled: seen == veiled, freely: seen >= freely}, fuse.OK
	}
	fd, foreign, err := s.hold(n)
	if foreign != "" {
		unix.Close(fd)
		return target{}, fuse.EACCES
	}
	if err != nil {
		return target{}, status(err)
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err != nil || st.Mode&unix.S_IFMT != n.Type { // replaced by the host since it was looked up
		unix.Close(fd)
		return target{}, errno(unix.ESTALE)
	}
	return target{Node: n, host: fd, own: true, veiled: seen == veiled, freely: seen == freely}, fuse.OK
}

// openAgain opens the host object of a node that holds no descriptor, where it was last seen. If something else is
// there now and nobody has it open, the kernel is told to look the name up anew.
func (s *Server) openAgain(n *nodes.Node) (target, fuse.Status) {
	fd := s.reopenSeen(n)
	if fd < 0 {
		fd = s.files.dup(n)
	}
	if fd < 0 {
		return target{}, errno(unix.ESTALE)
	}
	return target{Node: n, host: fd, own: true}, fuse.OK
}

func (s *Server) reopenSeen(n *nodes.Node) int {
	dir, name := s.nodes.SeenAt(n)
	if dir < 0 {
		return -1
	}
	fd, err := names.HoldBeneath(dir, name)
	if err != nil {
		return -1
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Dev != n.Key.Dev || st.Ino != n.Key.Ino ||
		st.Mode&unix.S_IFMT != n.Type {
		unix.Close(fd)
		return -1
	}
	return fd
}

// home finds the guarded directory in which a name is to be made, removed or moved. Any other directory that is no
// ground is read-only.
func (s *Server) home(id uint64, name string) (*nodes.Node, fuse.Status) {
	n := s.nodes.Get(id)
	switch {
	case n == nil:
		return nil, errno(unix.ESTALE)
	case !guard.ValidName(name):
		return nil, errno(names.Invalid(name))
	case s.isHistory(n, name):
		return s.historyDir(n)
	case n.Zone == nil:
		return nil, fuse.EROFS
	}
	return n, fuse.OK
}
