package planner

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// Bounds of what is mounted natively in a tree that is served.
const (
	maxBound     = 64     // sub-directories that are mounted natively
	maxProtected = 512    // names that are protected one by one where there is no file server
	guardScan    = 40_000 // directory entries that are looked through for guarded names that are protected so
)

// needsGuard says whether the directory is the project, or another that a person made writable: any can hold
// repositories and be opened as a project. It is guarded even if it holds nothing that wants a guard yet: a hook or a
// setting that the program makes is as dangerous as one that it changes. A grant that names a guarded thing itself is
// what its owner wants changed.
func (v *view) needsGuard(p string) bool {
	if v.in.NoGuard {
		return false
	}
	if p == v.in.Project || p == v.in.GitDir {
		return true
	}
	n := v.root.find(p)
	if n == nil || !n.granted || n.mode != Write || n.missing || !n.grant.guardable() || v.in.Containers != nil &&
		n.grant.Why != "" && p == v.in.Containers.Store {
		return false
	}
	if slices.Contains(v.in.Ungranted, p) {
		return false
	}
	return Guardable(p) || slices.Contains(v.in.Trees, p)
}

// guarded shows a directory with names in it that must stay hidden or unwritten, whatever the host or the program
// does to them.
func (v *view) guarded(p string, n *node, mode Mode, g Grant) error {
	if v.in.judges(mode) {
		return v.judged(p, n, g)
	}
	if !v.in.Facts.Fuse || !v.room(p, 1) {
		return v.covered(p, n, g)
	}
	n.live()
	v.serve(p, n, mode, g)
	return v.below(p, n)
}

// room takes as many places as trees below p, or p itself, need to be served, if there are so many. The project and
// its repository have one of their own.
func (v *view) room(p string, trees int) bool {
	if p == v.in.Project || p == v.in.GitDir {
		trees--
	}
	if v.served+trees > maxServed {
		return false
	}
	v.served += trees
	return true
}

// serve makes a directory a FUSE file system of the broker's. What lies in it and holds no hidden name is mounted
// natively on it where nothing can be written that way: it is read-only, or in a judged tree.
func (v *view) serve(p string, n *node, mode Mode, g Grant) {
	m := plan.Mount{Kind: plan.Fuse, Target: p, Source: p, Hide: n.hiddenNames(""), Access: plan.ReadOnly,
		NoExec: g.NoExec, Why: g.Why + ", guarded"}
	if mode == Write {
		m.Access = plan.ReadWrite
	}
	v.op(m)
	if v.in.nests() || mode == Write && !v.in.judges(mode) { // see judges
		return
	}
	dirs := v.worthBinding(v.plainDirs(p, n, nativeDepth), mode)
	if mode == Write {
		g.Why = NativeWhy
	}
	for _, dir := range dirs {
		v.bind(dir, Read, g)
	}
	v.native = append(v.native, dirs...)
}

// guardedFound is what a search for guarded names has found in a tree.
type guardedFound struct {
	names        []string        // absolute
	repositories []string        // directories that git takes for one
	above        map[string]bool // the directories above these, and those that were not looked through
	cut          bool
}

// guardedNames looks for them level by level, within a budget.
func (v *view) guardedNames(top string) guardedFound {
	out := guardedFound{above: make(map[string]bool)}
	mark := func(p string) {
		for ; p != top && p != "/" && !out.above[p]; p = path.Dir(p) {
			out.above[p] = true
		}
	}
	for _, r := range v.in.Referred {
		if r.Below == "" && !r.Free && host.Within(r.Path, top) && r.Path != top {
			out.names = append(out.names, r.Path)
			mark(path.Dir(r.Path))
		}
	}
	judge, err := guard.NewJudge(slices.Concat(v.in.ReferredIn(top), guard.BuiltIn()))
	if err != nil {
		return out
	}
	type dir struct {
		path string
		at   *guard.Place
	}
	left := guardScan
	for queue := []dir{{top, judge.Root()}}; len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		list, err := v.in.FS.ReadDir(d.path)
		if left -= len(list); err != nil || left < 0 {
			out.cut = true
			mark(d.path)
			continue
		}
		for _, e := range list {
			p := path.Join(d.path, e.Name)
			r := d.at.Rule(e.Name, guard.ByHost)
			switch {
			case r.Action == guard.Text && e.Type == host.Dir:
				out.repositories = append(out.repositories, p)
			case r.Action == guard.Keep:
				out.repositories = append(out.repositories, d.path)
			case r.Action == guard.Guard:
				out.names = append(out.names, p)
			}
			if r.Action != guard.Free || r.Anchored {
				mark(d.path)
			}
			if e.Type == host.Dir && (r.Action == guard.Free || r.Action == guard.Keep) {
				queue = append(queue, dir{p, d.at.Below(e.Name)})
			}
		}
	}
	return out
}

// plainDirs are sub-directories of p, which is served, that hold no hidden name, at most maxBound.
func (v *view) plainDirs(p string, n *node, depth int) (found []string) {
	list, _ := v.in.FS.ReadDir(p)
	for _, e := range list {
		child, c := path.Join(p, e.Name), n.child(e.Name)
		switch {
		case len(found) >= maxBound:
			return found[:maxBound]
		case e.Type != host.Dir || c != nil && (c.hidden || c.granted):
		case guard.SecretOf(e.Name, true) != nil: // what lies in it is judged name by name
		case c != nil && (c.hides() || c.finds()):
			if depth > 0 {
				found = append(found, v.plainDirs(child, c, depth-1)...)
			}
		default:
			found = append(found, child)
		}
	}
	return found
}

// bigEnough is the number of directory entries from which walking them through the broker would be felt.
const bigEnough = 1500

// worthBinding are the directories, if they hold so many names. In a small tree all is served: every name is judged
// when it is looked up, and directories can be removed and renamed; but for a repository, where neither is done.
func (v *view) worthBinding(dirs []string, mode Mode) []string {
	names := 0
	for _, dir := range dirs {
		if names += v.size(dir); names >= bigEnough {
			return dirs
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return mode == Read || path.Base(dir) != ".git" })
}

// size counts the names in a directory and below it, up to bigEnough.
func (v *view) size(dir string) int {
	n := 0
	queue := []string{dir}
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]
		list, err := v.in.FS.ReadDir(d)
		if err != nil {
			continue
		}
		if n += len(list); n >= bigEnough {
			return bigEnough
		}
		for _, e := range list {
			if e.Type == host.Dir && e.Name != ".git" {
				queue = append(queue, path.Join(d, e.Name))
			}
		}
	}
	return n
}

// covered is guarded without FUSE: the files stay the host's own, so the hidden ones are covered, not
// absent, and only names that exist already can be protected. That is a loss, and said.
func (v *view) covered(p string, n *node, g Grant) error {
	v.bind(p, Write, g)
	names := n.hiddenNames("")
	found := v.guardedNames(p)
	if p == v.in.GitDir {
		found.repositories = append(found.repositories, p)
	}
	protect := func(p string, a plan.Access) {
		if len(v.late) < maxProtected {
			v.late = append(v.late, plan.Mount{Kind: plan.Protect, Target: p, Access: a, Optional: a == plan.ReadOnly})
		}
	}
	for _, name := range found.names {
		if st, err := v.in.FS.Lstat(name); err == nil && st.Type != host.Link {
			protect(name, plan.ReadOnly)
		}
	}
	for _, dir := range found.repositories {
		if dir != p {
			protect(dir, plan.ReadWrite) // a mount point cannot be moved away
		}
		for _, f := range [...]string{"hooks", "config", "info/attributes", "config.worktree"} {
			protect(dir+"/"+f, plan.ReadOnly)
		}
	}
	v.mask(p, names)
	v.coverSockets(p, nil)
	why, fix := v.notServed()
	v.losses = append(v.losses, Loss{What: "guarded names in " + plan.Bytes(p).Quote(),
		Why: why + ", so " + strings.Join(append(names, "new hooks and settings"), ", ") +
			" are covered where they exist and not guarded where they do not",
		Fix: fix})
	return v.below(p, n)
}

// coverNames covers hidden names where nobody serves their directory, which is a loss.
func (v *view) coverNames(p string, names []string) {
	v.mask(p, names)
	if v.in.InPlace { // see granter
		return
	}
	why, fix := v.notServed()
	v.losses = append(v.losses, Loss{What: "hidden names in " + plan.Bytes(p).Quote(),
		Why: why + ", so " + strings.Join(names, ", ") +
			" are covered, and seen for a moment when the host replaces them", Fix: fix})
}

// mask covers hidden names.
func (v *view) mask(p string, names []string) {
	for _, h := range names {
		hp := path.Join(p, h)
		if st, err := v.in.FS.Lstat(hp); err == nil && st.Type == host.File {
			v.late = append(v.late, plan.Mount{Kind: plan.Mask, Target: hp, Why: "hidden name in a writable directory"})
		} else if err == nil && st.Type == host.Dir {
			v.late = append(v.late, plan.Mount{Kind: plan.Tmpfs, Target: hp, Size: 4096, Inodes: 2, Mode: 0o755,
				Access: plan.ReadOnly})
		}
	}
}

// notServed is why a directory is not served, and what to do about it.
func (v *view) notServed() (why, fix string) {
	switch {
	case v.in.Direct:
		fix = "user namespaces would give one"
		if v.in.Bubblewrap != nil {
			fix = "--backend native would give one"
		}
		return v.in.builder() + " mounts no file server", fix + "; keep secrets outside of the project"
	case v.in.Facts.Fuse:
		return fmt.Sprintf("sbx serves no more than %d directories beside the project", maxServed),
			"grant fewer, or use --overlay for the directory"
	}
	return "/dev/fuse cannot be opened", "make /dev/fuse accessible, or use --overlay for the directory"
}

// inTree says whether a directory lies in a tree that is mounted whole, where nothing can be made for a skeleton.
func (v *view) inTree(p string) bool {
	var above *plan.Mount
	for i := range v.out {
		if m := &v.out[i]; m.Target != p && host.Within(p, m.Target) && (above == nil || len(m.Target) >= len(above.Target)) {
			above = m
		}
	}
	return above != nil && (above.Kind == plan.Bind || above.Kind == plan.Overlay || above.Kind == plan.Fuse ||
		above.Kind == plan.Judged)
}

// readIn shows a directory in such a tree that is only read, and in which names are hidden.
func (v *view) readIn(p string, n *node, g Grant) error {
	if v.in.Facts.Fuse && v.room(p, 1) {
		n.live()
		v.serve(p, n, Read, g)
		return v.below(p, n)
	}
	v.bind(p, Read, g)
	v.coverNames(p, n.hiddenNames(""))
	return v.below(p, n)
}
