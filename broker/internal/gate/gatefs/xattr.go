//go:build linux

package gatefs

import (
	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
)

// GetXAttr reads one attribute.
func (s *Server) GetXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	if !names.UserXattr(name) {
		return 0, fuse.ENODATA
	}
	t, code := s.enter(cancel, h, grants.OpXattr)
	if code != fuse.OK {
		return 0, code
	}
	defer t.done()
	if t.host < 0 || t.Kind == nodes.Static && t.Dir.Kind == served.Skeleton || t.Type == unix.S_IFLNK {
		return 0, fuse.ENODATA
	}
	n, err := unix.Getxattr(names.FdPath(t.host), name, dest)
	return uint32(max(n, 0)), status(err)
}

// ListXAttr lists the attributes that GetXAttr would read.
func (s *Server) ListXAttr(cancel <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	t, code := s.enter(cancel, h, grants.OpXattr)
	if code != fuse.OK {
		return 0, code
	}
	defer t.done()
	if t.host < 0 || t.Kind == nodes.Static && t.Dir.Kind == served.Skeleton || t.Type == unix.S_IFLNK {
		return 0, fuse.OK
	}
	list, err := names.UserXattrs(names.FdPath(t.host))
	if err != nil {
		return 0, status(err)
	}
	if len(dest) < len(list) {
		return uint32(len(list)), fuse.ERANGE
	}
	return uint32(copy(dest, list)), fuse.OK
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
	case !names.UserXattr(name):
		return errno(unix.EOPNOTSUPP)
	case t.Type == unix.S_IFLNK:
		return fuse.EPERM
	}
	defer s.keeper.Keeping(t.host, nil)()
	defer s.expectAt(t.Node, unix.IN_ATTRIB)()
	return status(change(names.FdPath(t.host)))
}
