//go:build linux

// Package served describes what a served file system shows: directories, whose names they have, and what asks. It must
// not look at the host. Package gate words it from a plan, and package gatefs serves it.
package served

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"

	"sbx.example/sbx/broker/internal/gate/grants"
)

// Tree describes what the file system shows. Ancestors that are not described become skeletons without unlisted names.
type Tree struct {
	Dirs []Dir
}

// DirKind says who answers for a directory's names.
type DirKind uint8

const (
	Skeleton DirKind = iota // read-only: the listed children, and what Unlisted says
	Guarded                 // a writable loopback of the host directory, less what Rules forbid
)

// Unlisted says what a skeleton does with host names that are not among its children.
type Unlisted uint8

const (
	Absent   Unlisted = iota // they do not exist
	AskFirst                 // they are listed, and the first access asks
)

// Dir is one directory of the file system.
type Dir struct {
	Path     string // absolute path in the sandbox
	Host     string // the host directory behind it; empty means the same path
	Kind     DirKind
	Unlisted Unlisted
	Place    bool // Skeleton: something is mounted on it; the host is not consulted
	Asks     bool // Skeleton: to list it asks, as it would if nothing in it were granted
	Children []Child
	Judge    *guard.Judge // Guarded only; without one a directory inside another guarded one keeps that one's
	Zone     *guard.Place // Guarded only, instead of Judge: what holds in it, if that is not a judge's root
}

// ChildKind says what a listed name is. Sub-directories with a Dir of their own need no child.
type ChildKind uint8

const (
	// granted: the real object is mounted there; read-only loopback for those who reach below the mount
	Bound   ChildKind = iota
	Symlink           // a link to Target
	Hidden            // ENOENT for ever, whatever the host does
	// something is mounted there and covers what the host has, if it has anything
	Covered
)

// Child is one listed name of a directory.
type Child struct {
	Name   string
	Kind   ChildKind
	Target string      // Symlink
	Dir    bool        // Covered: by a directory
	Mode   grants.Mode // Bound: how it was mounted, to repeat it when the host replaces a file
}

// FileMode is that of a name that is there whatever the host has; 0: it is not.
func (c Child) FileMode() uint32 {
	switch {
	case c.Kind == Symlink:
		return unix.S_IFLNK | 0o777
	case c.Kind == Covered && c.Dir:
		return unix.S_IFDIR | 0o555
	case c.Kind == Covered:
		return unix.S_IFREG | 0o444
	}
	return 0
}

// Whole are all directories that the file system has, parents first. An ancestor that is not described has no host yet.
func (t Tree) Whole() []Dir {
	dirs := make(map[string]Dir, len(t.Dirs)*2)
	dirs["/"] = Dir{Path: "/"}
	for _, d := range t.Dirs {
		d.Host = cmp.Or(d.Host, d.Path)
		dirs[d.Path] = d
	}
	for _, d := range t.Dirs {
		for p := path.Dir(d.Path); p != "/"; p = path.Dir(p) {
			if _, ok := dirs[p]; !ok {
				dirs[p] = Dir{Path: p}
			}
		}
	}
	out := make([]Dir, 0, len(dirs))
	for _, p := range slices.Sorted(maps.Keys(dirs)) { // "/" sorts first, and a parent before its children
		out = append(out, dirs[p])
	}
	return out
}

// Check reports the first thing in the tree that cannot be served.
func (t Tree) Check() error {
	seen := make(map[string]bool, len(t.Dirs))
	for _, d := range t.Dirs {
		if !path.IsAbs(d.Path) || path.Clean(d.Path) != d.Path {
			return fmt.Errorf("describing %q: want a clean absolute path", d.Path)
		}
		if d.Host != "" && (!path.IsAbs(d.Host) || path.Clean(d.Host) != d.Host) {
			return fmt.Errorf("describing %s: host directory %q: want a clean absolute path", d.Path, d.Host)
		}
		if seen[d.Path] {
			return fmt.Errorf("describing %s: described twice", d.Path)
		}
		seen[d.Path] = true
		if d.Kind == Skeleton && d.Judge != nil {
			return fmt.Errorf("describing %s: a judge needs kind Guarded", d.Path)
		}
		if err := d.checkChildren(); err != nil {
			return err
		}
	}
	return nil
}

func (d Dir) checkChildren() error {
	seen := make(map[string]bool, len(d.Children))
	for _, c := range d.Children {
		if !guard.ValidName(c.Name) {
			return fmt.Errorf("describing %s: child %q: want one path component", d.Path, c.Name)
		}
		if seen[c.Name] {
			return fmt.Errorf("describing %s: child %q listed twice", d.Path, c.Name)
		}
		seen[c.Name] = true
		if c.Kind == Symlink && c.Target == "" {
			return fmt.Errorf("describing %s: symlink %q has no target", d.Path, c.Name)
		}
	}
	return nil
}
