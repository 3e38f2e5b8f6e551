//go:build linux

package gatefs

import (
	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// target is the object of one request.
type target struct {
	*node
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
	switch t.kind {
	case loop:
		return !t.ro
	case static:
		return t.dir.Kind == served.Guarded && t.zone.Open()
	}
	return t.freely
}

// enter finds the object of a request and, if it is gated, waits for permission.
func (s *Server) enter(cancel <-chan struct{}, h *fuse.InHeader, o grants.Op) (target, fuse.Status) {
	n := s.nodes.get(h.NodeId)
	if n == nil {
		return target{}, errno(unix.ESTALE)
	}
	if n.kind == loop && n.fd < 0 {
		return s.openAgain(n)
	}
	if n.kind != gated {
		return target{node: n, host: n.fd}, fuse.OK
	}
	seen, code := s.admit(cancel, h, n, o)
	if code != fuse.OK {
		return target{}, code
	}
	if seen == veiled {
		if o == grants.OpStat || o == grants.OpAccess {
			return target{node: n, host: -1, veiled: true}, fuse.OK
		}
		if o != grants.OpReadlink {
			return target{}, fuse.EACCES
		}
	}
	if n.fd >= 0 {
		if seen != itself && s.now(n) != n.path {
			return target{}, errno(unix.ESTALE)
		}
		return target{node: n, host: n.fd, veiled: seen == veiled, freely: seen >= freely}, fuse.OK
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
	if err != nil || st.Mode&unix.S_IFMT != n.typ { // replaced by the host since it was looked up
		unix.Close(fd)
		return target{}, errno(unix.ESTALE)
	}
	return target{node: n, host: fd, own: true, veiled: seen == veiled, freely: seen == freely}, fuse.OK
}

// openAgain opens the host object of a node that holds no descriptor, where it was last seen. If something else is
// there now and nobody has it open, the kernel is told to look the name up anew.
func (s *Server) openAgain(n *node) (target, fuse.Status) {
	fd := s.reopenSeen(n)
	if fd < 0 {
		fd = s.files.dup(n)
	}
	if fd < 0 {
		return target{}, errno(unix.ESTALE)
	}
	return target{node: n, host: fd, own: true}, fuse.OK
}

func (s *Server) reopenSeen(n *node) int {
	dir, name := s.nodes.seenAt(n)
	if dir < 0 {
		return -1
	}
	fd, err := names.HoldBeneath(dir, name)
	if err != nil {
		return -1
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Dev != n.key.Dev || st.Ino != n.key.Ino ||
		st.Mode&unix.S_IFMT != n.typ {
		unix.Close(fd)
		return -1
	}
	return fd
}

// home finds the guarded directory in which a name is to be made, removed or moved. Any other directory that is no
// ground is read-only.
func (s *Server) home(id uint64, name string) (*node, fuse.Status) {
	n := s.nodes.get(id)
	switch {
	case n == nil:
		return nil, errno(unix.ESTALE)
	case !guard.ValidName(name):
		return nil, errno(names.Invalid(name))
	case s.habit(n, name):
		return s.habitDir(n)
	case n.zone == nil:
		return nil, fuse.EROFS
	}
	return n, fuse.OK
}
