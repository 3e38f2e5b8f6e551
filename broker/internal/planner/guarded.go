package planner

import (
	"path"
	"sort"
	"strings"

	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/shared/plan"
)

// Bounds of what is mounted natively in a tree that is served.
const (
	maxBound  = 256  // sub-directories that are mounted natively
	bigEnough = 1500 // directory entries from which walking them through the broker would be felt
)

// needsGuard says whether the directory is the project. It is guarded even if it holds nothing that wants
// a guard yet: a hook or a setting that the program makes is as dangerous as one that it changes.
func (v *view) needsGuard(p string) bool {
	return (p == v.in.Project || p == v.in.GitDir) && !v.in.NoGuard
}

// guarded shows a directory with names in it that must stay hidden or unwritten, whatever the host or the program does to them. It is
// a FUSE file system of the broker's; large sub-directories that hold no such name are bound natively.
func (v *view) guarded(p string, n *node, mode Mode, g Grant) error {
	if !v.in.Facts.Fuse {
		return v.covered(p, n, g)
	}
	n.live()
	v.served++
	m := plan.Mount{Kind: plan.Fuse, Target: plan.Bytes(p), Source: plan.Bytes(p), Hide: v.hideList(n), Access: plan.ReadOnly, NoExec: g.NoExec, Why: g.Why + ", guarded"}
	if mode == Write {
		m.Access = plan.ReadWrite
	}
	v.op(m)
	if v.in.Containers != nil { // what is bound natively would be reached with the rights of subordinate ids
		return v.below(p, n)
	}
	if p == v.in.GitDir {
		if st, err := v.in.FS.Lstat(p + "/objects/pack"); err == nil && st.Type == host.Dir {
			v.bind(p+"/objects/pack", mode, g)
		}
		return v.below(p, n)
	}
	if c := n.child(".git"); c == nil || !c.hidden && !c.granted {
		if st, err := v.in.FS.Lstat(p + "/.git/objects/pack"); err == nil && st.Type == host.Dir {
			v.bind(p+"/.git/objects/pack", mode, g)
		}
	}
	for _, dir := range worthBinding(v.plainDirs(p, n, searchDepth, nil)) {
		v.bind(dir, mode, g)
	}
	return v.below(p, n)
}

// plainDir is a sub-directory of a guarded directory that needs no guard, and how many names are in it, at most
// bigEnough.
type plainDir struct {
	path string
	size int
}

// plainDirs adds to found the sub-directories of p that could be bound natively.
func (v *view) plainDirs(p string, n *node, depth int, found []plainDir) []plainDir {
	list, _ := v.in.FS.ReadDir(p)
	for _, e := range list {
		child, c := path.Join(p, e.Name), n.child(e.Name)
		switch {
		case e.Type != host.Dir || c != nil && (c.hidden || c.granted):
		case depth == searchDepth && (e.Name == ".git" || guard.Look(e.Name).Action == guard.Guard):
		case guard.SecretOf(e.Name, true) != nil: // what lies in it is judged name by name
		case c != nil && (c.hides() || c.finds()):
			found = v.plainDirs(child, c, depth-1, found)
		case !guard.Disposable(e.Name):
			found = append(found, plainDir{child, v.size(child)})
		}
	}
	return found
}

// worthBinding chooses, in order of their paths, the largest directories until the broker has less than bigEnough
// names left to serve. What is bound natively has a price: inside, it can be neither removed nor renamed, and
// nothing can be moved into or out of it without being copied. So nothing of a small project is bound, and never
// what tools delete and make anew.
func worthBinding(dirs []plainDir) []string {
	left := 0
	for _, d := range dirs {
		left += d.size
	}
	sort.SliceStable(dirs, func(i, j int) bool { return dirs[i].size > dirs[j].size })
	var out []string
	for _, d := range dirs {
		if left < bigEnough || len(out) == maxBound || d.size == 0 {
			break
		}
		left -= d.size
		out = append(out, d.path)
	}
	sort.Strings(out)
	return out
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
	list, _ := v.in.FS.ReadDir(p)
	for _, e := range list {
		if e.Type != host.Link && guard.Look(e.Name).Action == guard.Guard {
			v.late = append(v.late, plan.Mount{Kind: plan.Protect, Target: plan.Bytes(path.Join(p, e.Name)), Access: plan.ReadOnly, Optional: true})
		}
	}
	repository := p
	if st, err := v.in.FS.Lstat(p + "/.git"); p == v.in.Project && err == nil && st.Type == host.Dir {
		repository = p + "/.git"
		v.late = append(v.late, plan.Mount{Kind: plan.Protect, Target: plan.Bytes(repository), Access: plan.ReadWrite})
	}
	if repository != p || p == v.in.GitDir {
		for _, f := range []string{"hooks", "config", "info/attributes", "config.worktree"} {
			v.late = append(v.late, plan.Mount{Kind: plan.Protect, Target: plan.Bytes(repository + "/" + f), Access: plan.ReadOnly, Optional: true})
		}
	}
	for _, h := range names {
		hp := path.Join(p, h)
		if st, err := v.in.FS.Lstat(hp); err == nil && st.Type == host.File {
			v.late = append(v.late, plan.Mount{Kind: plan.Mask, Target: plan.Bytes(hp), Why: "hidden name in a writable directory"})
		} else if err == nil && st.Type == host.Dir {
			v.late = append(v.late, plan.Mount{Kind: plan.Tmpfs, Target: plan.Bytes(hp), Size: 4096, Inodes: 2, Mode: 0o755, Access: plan.ReadOnly})
		}
	}
	why, fix := "/dev/fuse cannot be opened", "make /dev/fuse accessible, or use --overlay for the directory"
	if v.in.Direct {
		why, fix = "sbx-helper mounts no file server", "user namespaces would give one; keep secrets outside of the project"
	}
	v.losses = append(v.losses, Loss{What: "guarded names in " + plan.Bytes(p).Quote(),
		Why: why + ", so " + strings.Join(append(names, "new hooks and settings"), ", ") + " are covered where they exist and not guarded where they do not",
		Fix: fix})
	return v.below(p, n)
}
