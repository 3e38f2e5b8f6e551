package planner

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"sbx/broker/internal/guard"
	"sbx/broker/internal/host"
	"sbx/shared/plan"
)

// Bounds of what is mounted natively in a tree that is served.
const (
	maxBound     = 256    // sub-directories that are mounted natively
	bigEnough    = 1500   // directory entries from which walking them through the broker would be felt
	maxProtected = 512    // names that are protected one by one where there is no file server
	guardScan    = 40_000 // directory entries that are looked through for guarded names before something is mounted natively
)

// needsGuard says whether the directory is the project, or another that a person made writable: any can hold repositories and be opened as a
// project. It is guarded even if it holds nothing that wants a guard yet: a hook or a setting that the program makes is as dangerous as
// one that it changes. A grant that names a guarded thing itself is what its owner wants changed.
func (v *view) needsGuard(p string) bool {
	if v.in.NoGuard {
		return false
	}
	if p == v.in.Project || p == v.in.GitDir {
		return true
	}
	n := v.root.find(p)
	if n == nil || !n.granted || n.mode != Write || n.missing || !n.grant.guardable() || v.in.Containers != nil && n.grant.Why != "" && p == v.in.Containers.Store {
		return false
	}
	if slices.Contains(v.in.Ungranted, p) {
		return false
	}
	act := guard.Look(strings.TrimPrefix(p, "/")).Action
	return act == guard.Free || act == guard.Text
}

// guarded shows a directory with names in it that must stay hidden or unwritten, whatever the host or the program does to them. It is
// a FUSE file system of the broker's; large sub-directories that hold no such name are bound natively.
func (v *view) guarded(p string, n *node, mode Mode, g Grant) error {
	first := p == v.in.Project || p == v.in.GitDir
	if !v.in.Facts.Fuse || !first && v.served == maxServed {
		return v.covered(p, n, g)
	}
	n.live()
	if !first {
		v.served++
	}
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
	plain := worthBinding(v.plainDirs(p, n, searchDepth, nil))
	if mode == Write && len(plain) > 0 && v.in.Judging == nil && v.needsGuard(p) {
		if found := v.guardedNames(p); len(found.above) > 0 {
			plain = worthBinding(v.plainDirs(p, n, searchDepth, found.above))
		}
		v.sayNative(p, plain)
	}
	for _, dir := range plain {
		v.judged(dir, mode, g)
	}
	return v.below(p, n)
}

func (v *view) sayNative(p string, dirs []string) {
	if len(dirs) > 0 {
		v.losses = append(v.losses, Loss{What: "guarded names deep in " + plan.Bytes(p).Quote(),
			Why: fmt.Sprintf("it is large, so %d of its directories are mounted natively: repositories and editors' settings made there are told of when the run ends, and not refused", len(dirs)),
			Fix: "--ephemeral, and look at what is applied"})
	}
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
		if host.Within(r.Path, top) && r.Path != top {
			out.names = append(out.names, r.Path)
			mark(path.Dir(r.Path))
		}
	}
	judge, err := guard.NewJudge(guard.BuiltIn())
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

// plainDir is a sub-directory of a guarded directory that needs no guard, and how many names are in it, at most
// bigEnough.
type plainDir struct {
	path string
	size int
}

// plainDirs are the sub-directories of p that could be bound natively.
func (v *view) plainDirs(p string, n *node, depth int, special map[string]bool) (found []plainDir) {
	list, _ := v.in.FS.ReadDir(p)
	for _, e := range list {
		child, c := path.Join(p, e.Name), n.child(e.Name)
		switch {
		case e.Type != host.Dir || c != nil && (c.hidden || c.granted):
		case e.Name == ".git" || depth == searchDepth && guard.Look(e.Name).Action == guard.Guard:
		case guard.SecretOf(e.Name, true) != nil: // what lies in it is judged name by name
		case c != nil && (c.hides() || c.finds()):
			found = append(found, v.plainDirs(child, c, depth-1, special)...)
		case special[child]:
			if depth > 0 {
				found = append(found, v.plainDirs(child, c, depth-1, special)...)
			}
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
	found := v.guardedNames(p)
	if p == v.in.GitDir {
		found.repositories = append(found.repositories, p)
	}
	protect := func(p string, a plan.Access) {
		if len(v.late) < maxProtected {
			v.late = append(v.late, plan.Mount{Kind: plan.Protect, Target: plan.Bytes(p), Access: a, Optional: a == plan.ReadOnly})
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
	for _, h := range names {
		hp := path.Join(p, h)
		if st, err := v.in.FS.Lstat(hp); err == nil && st.Type == host.File {
			v.late = append(v.late, plan.Mount{Kind: plan.Mask, Target: plan.Bytes(hp), Why: "hidden name in a writable directory"})
		} else if err == nil && st.Type == host.Dir {
			v.late = append(v.late, plan.Mount{Kind: plan.Tmpfs, Target: plan.Bytes(hp), Size: 4096, Inodes: 2, Mode: 0o755, Access: plan.ReadOnly})
		}
	}
	why, fix := "/dev/fuse cannot be opened", "make /dev/fuse accessible, or use --overlay for the directory"
	if v.in.Facts.Fuse {
		why, fix = fmt.Sprintf("sbx serves no more than %d directories beside the project", maxServed), "grant fewer, or use --overlay for the directory"
	}
	if v.in.Direct {
		why, fix = "sbx-helper mounts no file server", "user namespaces would give one; keep secrets outside of the project"
	}
	v.losses = append(v.losses, Loss{What: "guarded names in " + plan.Bytes(p).Quote(),
		Why: why + ", so " + strings.Join(append(names, "new hooks and settings"), ", ") + " are covered where they exist and not guarded where they do not",
		Fix: fix})
	return v.below(p, n)
}
