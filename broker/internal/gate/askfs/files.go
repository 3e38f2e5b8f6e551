//go:build linux

package askfs

import (
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
)

// handle is an open file or directory.
type handle struct {
	node  *node
	fd    int
	blank bool // what is in the place of a hidden file
	list  []fuse.DirEntry
}

// opened says whether anybody has a node open: what fstat(2) tells is known then.
func (s *Server) opened(n *node) bool {
	return s.files.Any(func(f *handle) bool { return f.node == n })
}

// Open opens a file. Who was allowed to look it up may have been so for a moment, so it is asked about again.
func (s *Server) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if in.Flags&unix.O_ACCMODE != unix.O_RDONLY || in.Flags&unix.O_TRUNC != 0 {
		return fuse.EROFS
	}
	n := s.node(in.NodeId)
	if n == nil {
		return fuse.Status(unix.ESTALE)
	}
	if n.place.File {
		return s.openFile(cancel, n, in, out)
	}
	return s.reopen(cancel, n, in, unix.O_RDONLY, grants.OpOpen, out)
}

// reopen opens what a node is. A yes that is good for this once is so for what was there when it was looked up.
func (s *Server) reopen(cancel <-chan struct{}, n *node, in *fuse.OpenIn, flags int, op grants.Op,
	out *fuse.OpenOut) fuse.Status {
	fd, st, code := n.again()
	if code != fuse.OK {
		return code
	}
	defer unix.Close(fd)
	id, err := names.ID(fd)
	if err != nil || s.opts.Hidden(in.Pid, n.path(), &st, true) {
		return fuse.Status(n.place.No)
	}
	if code = s.allowed(cancel, &in.InHeader, n.place, n.object(), op); code != fuse.OK {
		return code
	}
	if !n.own && !s.known(n.key, id) && s.Grants.Find(n.object(), op) == nil {
		return fuse.EACCES
	}
	file, err := names.Reopen(fd, flags|unix.O_NOCTTY|unix.O_NONBLOCK)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && s.opts.Config != nil && s.opts.Config(n.path()) {
		file, err = names.Shown(file, nil)
	}
	if err != nil {
		return fuse.ToStatus(err)
	}
	out.Fh = s.files.Add(&handle{node: n, fd: file})
	return fuse.OK
}

// openFile opens a hidden file: the host's after a yes, else what is in its place. Nothing of either stays in the
// kernel's memory for who opens the other.
func (s *Server) openFile(cancel <-chan struct{}, n *node, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
	if s.ready.Load() {
		code := s.reopen(cancel, n, in, unix.O_RDONLY, grants.OpOpen, out)
		if code == fuse.OK || code == fuse.EINTR {
			return code
		}
	}
	if n.place.Mode&0o444 == 0 {
		return fuse.EACCES
	}
	fd, err := names.Reopen(n.place.data, unix.O_RDONLY)
	if err != nil {
		return fuse.ToStatus(err)
	}
	out.Fh = s.files.Add(&handle{node: n, fd: fd, blank: true})
	return fuse.OK
}

// Access answers access(2) of a hidden file; of what is in a directory the overlay says it. Whether it may be read is
// asked about when it is opened.
func (s *Server) Access(_ <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	n := s.node(in.NodeId)
	if n == nil || !n.place.File {
		return fuse.OK
	}
	st := n.place.blank()
	if s.Grants.Find(n.object(), grants.OpStat) != nil {
		if fd, is, code := n.again(); code == fuse.OK {
			unix.Close(fd)
			st = is
		}
	}
	switch {
	case in.Mask&fuse.W_OK != 0:
		return fuse.EROFS
	case in.Mask&fuse.X_OK != 0 && st.Mode&0o111 == 0:
		return fuse.EACCES
	}
	return fuse.OK
}

// Read reads an open file.
func (s *Server) Read(_ <-chan struct{}, in *fuse.ReadIn, _ []byte) (fuse.ReadResult, fuse.Status) {
	f := s.files.Get(in.Fh)
	if f == nil {
		return fuse.ReadResult{}, fuse.EBADF
	}
	return fuse.ReadResultFd(uintptr(f.fd), int64(in.Offset), int(in.Size)), fuse.OK
}

// Release closes a file.
func (s *Server) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	if f := s.files.Drop(in.Fh); f != nil && f.fd >= 0 {
		unix.Close(f.fd)
	}
}

// ReleaseDir closes a directory.
func (s *Server) ReleaseDir(in *fuse.ReleaseIn) { s.Release(nil, in) }

// OpenDir opens a directory. In one that is hidden nobody is asked about its names: it has those that were granted.
func (s *Server) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n := s.node(in.NodeId)
	switch {
	case in.NodeId == fuse.FUSE_ROOT_ID:
		return fuse.EACCES
	case n == nil:
		return fuse.Status(unix.ESTALE)
	case !n.own:
		return s.reopen(cancel, n, in, unix.O_RDONLY|unix.O_DIRECTORY, grants.OpStat, out)
	}
	f := &handle{node: n, fd: -1} // of what the user may not list it has no names
	if fd, _, code := n.again(); code == fuse.OK {
		if file, err := names.Reopen(fd, unix.O_RDONLY|unix.O_DIRECTORY); err == nil {
			f.fd = file
		}
		unix.Close(fd)
	}
	out.Fh = s.files.Add(f)
	return fuse.OK
}

// ReadDir lists a directory.
func (s *Server) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return s.listed(in, out.AddDirEntry)
}

// ReadDirPlus lists it without telling more of its names.
func (s *Server) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return s.listed(in, func(e fuse.DirEntry) bool { return out.AddDirLookupEntry(e) != nil })
}

func (s *Server) listed(in *fuse.ReadIn, add func(fuse.DirEntry) bool) fuse.Status {
	f := s.files.Get(in.Fh)
	if f == nil {
		return fuse.EBADF
	}
	if in.Offset == 0 { // also of a directory that is rewound
		f.list = s.names(f, in.Pid)
	}
	for i := in.Offset; i < uint64(len(f.list)); i++ {
		e := f.list[i]
		e.Off = i + 1
		if !add(e) {
			break
		}
	}
	return fuse.OK
}

// names are those of a directory that are shown.
func (s *Server) names(f *handle, pid uint32) []fuse.DirEntry {
	out := []fuse.DirEntry{{Name: ".", Mode: unix.S_IFDIR}, {Name: "..", Mode: unix.S_IFDIR}}
	dup, err := names.Reopen(f.fd, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return out
	}
	dir := os.NewFile(uintptr(dup), f.node.path())
	defer dir.Close()
	list, _ := dir.ReadDir(-1) // a directory that fails half-way has what it told
	slices.SortFunc(list, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	all := !f.node.own || s.Grants.Find(f.node.object(), grants.OpStat) != nil
	for _, e := range list {
		var st unix.Stat_t
		if names.Stat(dup, e.Name(), &st) != nil {
			continue
		}
		typ, rel := st.Mode&unix.S_IFMT, path.Join(f.node.rel, e.Name())
		switch p := f.node.place; {
		case typ != unix.S_IFREG && typ != unix.S_IFDIR && typ != unix.S_IFLNK:
		case p.made[rel] && typ == unix.S_IFDIR,
			(all || s.Grants.Find(grants.Object{Path: p.path(rel), Type: typ}, grants.OpStat) != nil) &&
				!s.opts.Hidden(pid, p.path(rel), &st, false):
			out = append(out, fuse.DirEntry{Name: e.Name(), Mode: typ, Ino: st.Ino})
		}
	}
	return out
}
