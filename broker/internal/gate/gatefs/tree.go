package gatefs

import (
	"fmt"
	"path"
	"strings"
	"syscall"
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
	Children []Child
	Rules    []Rule // Guarded only; without rules a directory inside another guarded one keeps that one's rules
}

// ChildKind says what a listed name is. Sub-directories with a Dir of their own need no child.
type ChildKind uint8

const (
	Bound   ChildKind = iota // granted: the real object is mounted there; read-only loopback for those who reach below the mount
	Symlink                  // a link to Target
	Hidden                   // ENOENT for ever, whatever the host does
	Silent                   // Errno (ENOENT or EACCES) without a question; the host is not consulted
	Gated                    // asks, also where unlisted names are absent
)

// Child is one listed name of a directory.
type Child struct {
	Name   string
	Kind   ChildKind
	Target string        // Symlink
	Errno  syscall.Errno // Silent; zero means ENOENT
	Mode   Mode          // Bound: how it was mounted, to repeat it when the host replaces a file
}

// Action is what a rule does to the names it matches.
type Action uint8

const (
	Plain Action = iota // no rule: the loopback passes everything through
	Allow               // like Plain, and ends an inherited Guard
	Hide                // ENOENT to look at, EACCES to create
	Guard               // readable; EROFS to create, write, rename, replace or remove, with all that is below
	Check               // Guard, but a rename onto it is put before Options.Check
)

// Rule matches names in a guarded directory. Pattern is a slash-separated path relative to the directory; a component may hold
// the wildcards of path.Match, and "**" stands for any number of components. The first rule that matches decides. Letter case
// and invisible characters make no difference, so that a case-folding host directory has no second spelling of a guarded name.
type Rule struct {
	Pattern string
	Action  Action
	Mkdir   bool // Guard: an empty directory of that name may be made (git init makes .git/hooks)
}

// check reports the first thing in the tree that cannot be served.
func (t Tree) check() error {
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
		if d.Kind == Skeleton && len(d.Rules) > 0 {
			return fmt.Errorf("describing %s: rules need kind Guarded", d.Path)
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
		if !validName(c.Name) {
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

func validName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 255 && !strings.ContainsAny(s, "/\x00")
}
