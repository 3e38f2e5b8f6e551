//go:build linux

package gatefs

import (
	"fmt"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// dir is a directory of the tree as the server uses it.
type dir struct {
	served.Dir
	children map[string]served.Child
	subs     map[string]*node
	attr     unix.Stat_t
}

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
	var parent *node
	if d.Path != "/" {
		parent = s.nodes.get(s.nodes.pathID(path.Dir(d.Path), unix.S_IFDIR, ""))
		// What nobody described below a guarded directory is part of it.
		if parent.kind == static && parent.dir.Kind == served.Guarded && d.Host == "" {
			d.Kind, d.Host = served.Guarded, path.Join(parent.dir.Host, path.Base(d.Path))
		}
	}
	if d.Host == "" {
		d.Host = d.Path
	}
	n := &node{kind: static, typ: unix.S_IFDIR, path: d.Path, fd: -1, id: s.nodes.pathID(d.Path, unix.S_IFDIR,
		"")}
	n.dir = &dir{Dir: d, children: make(map[string]served.Child, len(d.Children)), subs: make(map[string]*node)}
	for _, c := range d.Children {
		n.dir.children[c.Name] = c
	}
	if err := s.openStatic(n); err != nil {
		return err
	}
	if n.fd < 0 && !d.Place && parent != nil {
		at := below(parent, path.Base(d.Path))
		n.base, n.rel = at.base, at.rel
	}
	if d.Kind == served.Guarded {
		if err := s.zoneOf(n, parent); err != nil {
			return err
		}
	}
	if parent != nil {
		parent.dir.subs[path.Base(d.Path)] = n
	}
	s.nodes.plant(n)
	s.Grants.Fix(n.path)
	for _, c := range d.Children {
		if c.Kind == served.Bound {
			s.Grants.Bound(path.Join(d.Path, c.Name), c.Mode)
		}
	}
	return nil
}

func (s *Server) zoneOf(n, parent *node) error {
	n.key.ID, _ = names.ID(n.fd) // none where the host has no directory
	if n.dir.Zone != nil {
		n.zone = n.dir.Zone
		return nil
	}
	if parent != nil && parent.zone != nil && n.dir.Judge == nil {
		n.zone = parent.zone.Below(path.Base(n.path))
		return nil
	}
	judge := n.dir.Judge
	if judge == nil {
		var err error
		if judge, err = guard.NewJudge(nil); err != nil {
			return fmt.Errorf("describing %s: %w", n.path, err)
		}
	}
	n.zone = judge.Root()
	if names.Type(n.fd, "HEAD") != 0 {
		n.zone = n.zone.Repository()
	}
	return nil
}

// openStatic holds the host directory. A skeleton may be without one: its unlisted names are then absent, until the
// host has it.
func (s *Server) openStatic(n *node) error {
	if n.dir.Place {
		n.dir.attr = unix.Stat_t{Mode: unix.S_IFDIR | 0o555, Nlink: 2, Uid: ^uint32(0), Gid: ^uint32(0)}
		return nil
	}
	fd, err := names.HoldPlainDirectory(n.dir.Host) // another session may exchange what is in its project
	if err == nil {
		err = unix.Fstat(fd, &n.dir.attr)
		if err != nil {
			unix.Close(fd)
		}
	}
	if err == nil {
		n.fd = fd
		return nil
	}
	if n.dir.Kind == served.Guarded {
		return fmt.Errorf("opening guarded directory %s: %w", n.dir.Host, err)
	}
	n.dir.attr = unix.Stat_t{Mode: unix.S_IFDIR | 0o555, Nlink: 2, Uid: ^uint32(0), Gid: ^uint32(0)}
	if n.dir.Unlisted == served.AskFirst { // as it will be: the kernel lets nobody write where the owner is no user
		now := unix.NsecToTimespec(time.Now().UnixNano())
		n.dir.attr.Mode, n.dir.attr.Uid, n.dir.attr.Gid = unix.S_IFDIR|0o700, s.uid, s.uid
		n.dir.attr.Atim, n.dir.attr.Mtim, n.dir.attr.Ctim = now, now, now
	}
	return nil
}

// has reports whether the directory's description settles the name, whatever the host has there.
func (d *dir) has(name string) bool {
	_, child := d.children[name]
	_, sub := d.subs[name]
	return child || sub
}
