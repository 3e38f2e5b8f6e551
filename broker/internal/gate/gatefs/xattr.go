//go:build linux

package gatefs

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/served"
)

// Only user attributes pass: the others mean something to the host's kernel.
func plainXattr(name string) bool {
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

// GetXAttr reads one attribute.
func (s *Server) GetXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if !plainXattr(name) {
		return 0, fuse.ENODATA
	}
	t, code := s.enter(cancel, h, grants.OpXattr)
	if code != fuse.OK {
		return 0, code
	}
	defer t.done()
	if t.host < 0 || t.kind == static && t.dir.Kind == served.Skeleton || t.typ == unix.S_IFLNK {
		return 0, fuse.ENODATA
	}
	n, err := unix.Getxattr(procPath(t.host), name, dest)
	return uint32(max(n, 0)), status(err)
}

// ListXAttr lists the attributes that GetXAttr would read.
func (s *Server) ListXAttr(cancel <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	t, code := s.enter(cancel, h, grants.OpXattr)
	if code != fuse.OK {
		return 0, code
	}
	defer t.done()
	if t.host < 0 || t.kind == static && t.dir.Kind == served.Skeleton || t.typ == unix.S_IFLNK {
		return 0, fuse.OK
	}
	buf := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Listxattr(procPath(t.host), buf)
	if err != nil {
		return 0, status(err)
	}
	var names []byte
	for name := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if plainXattr(string(name)) {
			names = append(append(names, name...), 0)
		}
	}
	if len(dest) < len(names) {
		return uint32(len(names)), fuse.ERANGE
	}
	return uint32(copy(dest, names)), fuse.OK
}

// SetXAttr writes one attribute.
func (s *Server) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	return s.changeXattr(cancel, &in.InHeader, name, func(path string) error {
		return unix.Setxattr(path, name, data[:min(len(data), int(in.Size))], int(in.Flags))
	})
}

// RemoveXAttr removes one attribute.
func (s *Server) RemoveXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return s.changeXattr(cancel, h, name, func(path string) error { return unix.Removexattr(path, name) })
}

func (s *Server) changeXattr(cancel <-chan struct{}, h *fuse.InHeader, name string,
	change func(path string) error) fuse.Status {
	t, code := s.enter(cancel, h, grants.OpSetAttr)
	if code != fuse.OK {
		return code
	}
	defer t.done()
	switch {
	case !t.writable():
		return fuse.EROFS
	case !plainXattr(name):
		return errno(unix.EOPNOTSUPP)
	case t.typ == unix.S_IFLNK:
		return fuse.EPERM
	}
	defer s.keeper.Keeping(t.host, nil)()
	defer s.expectAt(t.node, unix.IN_ATTRIB)()
	return status(change(procPath(t.host)))
}
