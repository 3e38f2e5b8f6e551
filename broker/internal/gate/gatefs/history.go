//go:build linux

package gatefs

import (
	"os"
	"path"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// What was typed in a program is kept by it in the home: in a file, with a lock beside it, and with what is moved to
// its name. Such names (AccessPolicy.IsHistory) are made in a directory of the session's own, and are found there
// first.

// histories is that directory, a guarded one without rules. The kernel knows it by the number of the one that its names
// are shown in.
type histories struct {
	mu  sync.Mutex
	dir *nodes.Node // nil until the first name is made
}

// isHistory says whether a name in a directory that asks is one of those.
func (s *Server) isHistory(n *nodes.Node, name string) bool {
	if n.Kind != nodes.Static || n.Dir.Kind != served.Skeleton ||
		n.Dir.Unlisted != served.AskFirst || !guard.ValidName(name) {
		return false
	}
	c, ok := n.Dir.Children[name]
	shown := ok && c.Kind != served.Hidden || n.Dir.Subs[name] != nil
	return !shown && s.opts.Access.IsHistory(path.Join(n.Path, name))
}

// madeHistory is the session's directory if what has the name was made there.
func (s *Server) madeHistory(n *nodes.Node, name string) *nodes.Node {
	if !s.isHistory(n, name) {
		return nil
	}
	s.histories.mu.Lock()
	defer s.histories.mu.Unlock()
	var st unix.Stat_t
	if d := s.histories.dir; d != nil && names.Stat(d.FD, name, &st) == nil {
		return d
	}
	return nil
}

// historyDir is the session's directory, which is made if it is not there.
func (s *Server) historyDir(at *nodes.Node) (*nodes.Node, fuse.Status) {
	s.histories.mu.Lock()
	defer s.histories.mu.Unlock()
	if s.histories.dir != nil {
		return s.histories.dir, fuse.OK
	}
	n := &nodes.Node{Kind: nodes.Static, Type: unix.S_IFDIR, Path: at.Path, ID: at.ID, FD: -1,
		Dir: &nodes.Dir{Dir: served.Dir{Path: at.Path, Host: s.opts.HistoryDir, Kind: served.Guarded}}}
	err := os.MkdirAll(s.opts.HistoryDir, 0o700)
	if err == nil {
		err = s.openStatic(n)
	}
	if err == nil {
		err = s.zoneOf(n, nil)
	}
	if err == nil {
		s.histories.dir = n
	}
	return n, status(err)
}

// existing is home for a name that something has. Of the host's nothing is removed or moved.
func (s *Server) existing(id uint64, name string) (*nodes.Node, fuse.Status) {
	if n := s.nodes.Get(id); n != nil && s.isHistory(n, name) && s.madeHistory(n, name) == nil {
		return nil, fuse.EACCES
	}
	return s.home(id, name)
}

// addHistories lists what was made.
func (s *Server) addHistories(n *nodes.Node, list []fuse.DirEntry) []fuse.DirEntry {
	s.histories.mu.Lock()
	d := s.histories.dir
	s.histories.mu.Unlock()
	if d == nil || d.ID != n.ID {
		return list
	}
	fd, err := s.reopen(d.FD, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return list
	}
	defer unix.Close(fd)
	_ = s.listHost(&handle{fd: fd, node: d}, 0, func(e fuse.DirEntry) bool {
		if !slices.ContainsFunc(list, func(o fuse.DirEntry) bool { return o.Name == e.Name }) { // "." is there, too
			list = append(list, e)
		}
		return true
	})
	return list
}

func (h *histories) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dir != nil {
		unix.Close(h.dir.FD)
	}
	h.dir = nil
}
