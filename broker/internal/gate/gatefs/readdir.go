//go:build linux

package gatefs

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
)

const direntBuffer = 8192

// OpenDir opens a directory for listing. Listing a gated directory asks; of skeletons only one does that has Dir.Asks.
func (s *Server) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	t, code := s.enter(cancel, &in.InHeader, grants.OpList)
	if code != fuse.OK {
		return code
	}
	defer t.done()
	if t.Kind == nodes.Static && t.Dir.Asks && !s.opts.Unasked && !s.isAgent(&in.InHeader) {
		if _, _, code := s.permission(cancel, &in.InHeader, t.Node, grants.OpList); code != fuse.OK {
			return code
		}
	}
	h := &handle{fd: -1, node: t.Node}
	if t.Kind != nodes.Static || t.Dir.Kind == served.Guarded {
		fd, err := s.reopen(t.host, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return status(err)
		}
		h.fd = fd
	}
	out.Fh = s.files.Add(h)
	return fuse.OK
}

// ReadDir lists names and types.
func (s *Server) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return s.list(in, out.AddDirEntry)
}

// ReadDirPlus lists like ReadDir and gives entries to the agent, whose listing is there to make dentries. For others
// the entry part stays zero, which tells the kernel nothing: a stat of every listed name would cost more than the
// lookups it saves.
func (s *Server) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	h := s.files.Get(in.Fh)
	agent := s.isAgent(&in.InHeader) && h != nil && h.node.Kind == nodes.Static
	return s.list(in, func(e fuse.DirEntry) bool {
		entry := out.AddDirLookupEntry(e)
		if entry == nil {
			return false
		}
		if agent && e.Name != "." && e.Name != ".." {
			if s.Lookup(cancel, &in.InHeader, e.Name, entry) != fuse.OK {
				*entry = fuse.EntryOut{}
			}
		}
		return true
	})
}

func (s *Server) list(in *fuse.ReadIn, add func(fuse.DirEntry) bool) fuse.Status {
	h := s.files.Get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if in.Offset == 0 && !s.isAgent(&in.InHeader) {
		s.listed(h.node, in.Pid)
	}
	if h.fd >= 0 {
		if h.node.Kind == nodes.Gated {
			all, lists := add, s.listing(&in.InHeader, false)
			add = func(e fuse.DirEntry) bool { return !lists(path.Join(h.node.Path, e.Name)) || all(e) }
		}
		return status(s.listHost(h, int64(in.Offset), withOwn(h.node, add)))
	}
	if in.Offset == 0 || h.names == nil { // a rewound directory is read anew
		h.names = s.skeletonNames(h.node, s.listing(&in.InHeader, s.opts.Unasked))
	}
	for i := in.Offset; i < uint64(len(h.names)); i++ {
		e := h.names[i]
		e.Off = i + 1
		if !add(e) {
			break
		}
	}
	return fuse.OK
}

// withOwn lists the names that are there whatever the host has, right behind the first entry of a host's directory.
func withOwn(n *nodes.Node, add func(fuse.DirEntry) bool) func(fuse.DirEntry) bool {
	if n.Dir == nil || len(n.Dir.Children) == 0 {
		return add
	}
	return func(e fuse.DirEntry) bool {
		if n.Dir.Children[e.Name].FileMode() != 0 {
			return true
		}
		ok := add(e)
		for name, c := range n.Dir.Children {
			if mode := c.FileMode(); ok && e.Name == "." && mode != 0 {
				ok = add(fuse.DirEntry{Name: name, Mode: mode & unix.S_IFMT, Ino: n.ID, Off: e.Off})
			}
		}
		return ok
	}
}

// listHost passes the host's names on, less the hidden ones; offsets are the host's, so seekdir works.
func (s *Server) listHost(h *handle, off int64, add func(fuse.DirEntry) bool) error {
	if _, err := unix.Seek(h.fd, off, unix.SEEK_SET); err != nil {
		return err
	}
	var buf [direntBuffer]byte // not the handle's: whoever holds thousands of directories open would hold as many of these
	for {
		n, err := unix.Getdents(h.fd, buf[:])
		if err != nil || n <= 0 {
			return err
		}
		for b := buf[:n]; len(b) > 0; {
			var e fuse.DirEntry
			b = b[e.Parse(b):]
			if s.hides(h.node, e.Name) {
				continue
			}
			if !add(e) {
				return nil
			}
		}
	}
}

func (s *Server) hides(n *nodes.Node, name string) bool {
	if n.Dir != nil {
		if c, ok := n.Dir.Children[name]; ok {
			return c.Kind == served.Hidden
		}
		if n.Dir.Subs[name] != nil {
			return false
		}
	}
	if n.Zone == nil {
		return false
	}
	v := s.verdict(n, name)
	return hidden(v) || v.Secret != nil && !s.shows(n, name)
}

// listing says which of the host's names that ask somebody sees; granted: but for the agent only what is granted.
func (s *Server) listing(h *fuse.InHeader, granted bool) func(p string) bool {
	agent := s.isAgent(h)
	return func(p string) bool {
		return s.opts.Access.Secrecy(h.Pid, p).Listed(agent, func() bool {
			return !granted || s.granted(&nodes.Node{Path: p})
		})
	}
}

// skeletonNames lists the described names and, where unlisted ones may be asked for, the host's that lists has.
func (s *Server) skeletonNames(n *nodes.Node, lists func(p string) bool) []fuse.DirEntry {
	list := []fuse.DirEntry{{Name: ".", Mode: unix.S_IFDIR, Ino: n.ID}, {Name: "..", Mode: unix.S_IFDIR, Ino: n.ID}}
	for name, sub := range n.Dir.Subs {
		list = append(list, fuse.DirEntry{Name: name, Mode: unix.S_IFDIR, Ino: sub.ID})
	}
	for name, c := range n.Dir.Children {
		var st unix.Stat_t
		switch c.Kind {
		case served.Symlink, served.Covered:
			st.Mode = c.FileMode()
		case served.Bound:
			if n.Dir.Subs[name] != nil || n.FD < 0 || names.Stat(n.FD, name, &st) != nil {
				continue
			}
		default:
			continue
		}
		list = append(list, fuse.DirEntry{Name: name, Mode: st.Mode & unix.S_IFMT, Ino: st.Ino})
	}
	if n.Dir.Unlisted == served.AskFirst {
		list = s.addUnlisted(n, list, lists)
		if n.FD >= 0 {
			list = s.addHistories(n, list)
		}
	}
	slices.SortFunc(list[2:], func(a, b fuse.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (s *Server) addUnlisted(n *nodes.Node, list []fuse.DirEntry, lists func(p string) bool) []fuse.DirEntry {
	at := n.FD
	if at < 0 {
		late, err := s.openLate(n)
		if err != nil {
			return list
		}
		defer unix.Close(late)
		at = late
	}
	fd, err := s.reopen(at, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return list
	}
	defer unix.Close(fd)
	h := handle{fd: fd, node: n}
	_ = s.listHost(&h, 0, func(e fuse.DirEntry) bool { // a directory that fails half-way lists what it told
		if e.Name != "." && e.Name != ".." && !n.Dir.Settles(e.Name) && lists(path.Join(n.Path, e.Name)) {
			list = append(list, e)
		}
		return true
	})
	return list
}
