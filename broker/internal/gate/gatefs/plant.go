//go:build linux

package gatefs

import (
	"fmt"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// plant makes the static nodes, parents first, and opens their host directories.
func (s *Server) plant(t served.Tree) error {
	for _, d := range t.Whole() {
		if err := s.plantDir(d); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) plantDir(d served.Dir) error {
	var parent *nodes.Node
	if d.Path != "/" {
		parent = s.nodes.Get(s.nodes.PathID(path.Dir(d.Path), unix.S_IFDIR, ""))
		// What nobody described below a guarded directory is part of it.
		if parent.Kind == nodes.Static && parent.Dir.Kind == served.Guarded && d.Host == "" {
			d.Kind, d.Host = served.Guarded, path.Join(parent.Dir.Host, path.Base(d.Path))
		}
	}
	if d.Host == "" {
		d.Host = d.Path
	}
	n := &nodes.Node{Kind: nodes.Static, Type: unix.S_IFDIR, Path: d.Path, FD: -1,
		ID: s.nodes.PathID(d.Path, unix.S_IFDIR, "")}
	n.Dir = &nodes.Dir{Dir: d, Children: make(map[string]served.Child, len(d.Children)),
		Subs: make(map[string]*nodes.Node)}
	for _, c := range d.Children {
		n.Dir.Children[c.Name] = c
	}
	if err := s.openStatic(n); err != nil {
		return err
	}
	if n.FD < 0 && !d.Place && parent != nil {
		at := below(parent, path.Base(d.Path))
		n.Base, n.Rel = at.Base, at.Rel
	}
	if d.Kind == served.Guarded {
		if err := s.zoneOf(n, parent); err != nil {
			return err
		}
	}
	if parent != nil {
		parent.Dir.Subs[path.Base(d.Path)] = n
	}
	s.nodes.Plant(n)
	s.Grants.Fix(n.Path)
	for _, c := range d.Children {
		if c.Kind == served.Bound {
			s.Grants.Bound(path.Join(d.Path, c.Name), c.Mode)
		}
	}
	return nil
}

func (s *Server) zoneOf(n, parent *nodes.Node) error {
	n.Key.ID, _ = names.ID(n.FD) // none where the host has no directory
	if n.Dir.Zone != nil {
		n.Zone = n.Dir.Zone
		return nil
	}
	if parent != nil && parent.Zone != nil && n.Dir.Judge == nil {
		n.Zone = parent.Zone.Below(path.Base(n.Path))
		return nil
	}
	judge := n.Dir.Judge
	if judge == nil {
		var err error
		if judge, err = guard.NewJudge(nil); err != nil {
			return fmt.Errorf("describing %s: %w", n.Path, err)
		}
	}
	n.Zone = judge.Root()
	if names.Type(n.FD, "HEAD") != 0 {
		n.Zone = n.Zone.Repository()
	}
	return nil
}

// openStatic holds the host directory. A skeleton may be without one: its unlisted names are then absent, until the
// host has it.
func (s *Server) openStatic(n *nodes.Node) error {
	if n.Dir.Place {
		n.Dir.Attr = unix.Stat_t{Mode: unix.S_IFDIR | 0o555, Nlink: 2, Uid: ^uint32(0), Gid: ^uint32(0)}
		return nil
	}
	fd, err := names.HoldPlainDirectory(n.Dir.Host) // another session may exchange what is in its project
	if err == nil {
		err = unix.Fstat(fd, &n.Dir.Attr)
		if err != nil {
			unix.Close(fd)
		}
	}
	if err == nil {
		n.FD = fd
		return nil
	}
	if n.Dir.Kind == served.Guarded {
		return fmt.Errorf("opening guarded directory %s: %w", n.Dir.Host, err)
	}
	n.Dir.Attr = unix.Stat_t{Mode: unix.S_IFDIR | 0o555, Nlink: 2, Uid: ^uint32(0), Gid: ^uint32(0)}
	if n.Dir.Unlisted == served.AskFirst { // as it will be: the kernel lets nobody write where the owner is no user
		now := unix.NsecToTimespec(time.Now().UnixNano())
		n.Dir.Attr.Mode, n.Dir.Attr.Uid, n.Dir.Attr.Gid = unix.S_IFDIR|0o700, s.uid, s.uid
		n.Dir.Attr.Atim, n.Dir.Attr.Mtim, n.Dir.Attr.Ctim = now, now, now
	}
	return nil
}
