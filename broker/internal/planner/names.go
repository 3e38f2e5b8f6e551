package planner

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/broker/plan"
)

// Bounds of the search for names of secrets in the trees that are shown: below them lies what a person put there, above
// them what tools unpacked.
const (
	nativeDepth = 6 // directories below a served tree's top, for what is mounted natively in it
	// directory entries of one tree, with what it takes to open directories and files in the same unit
	searchBudget  = 10000
	writtenBudget = 20 * searchBudget // of one that programs write: they can make directories beside what is hidden
	homeBudget    = 2500              // of a whole home
	maxServed     = plan.MaxFuse - 2  // trees that the broker serves beside the project and its repository
	maxServedRO   = 3                 // as long as no more are, one that is only read is served
)

// shownTree is a tree of a user's that a grant shows, in which names of secrets are hidden.
type shownTree struct {
	root string
	mode Mode
}

// Judge returns what judges files for this input: the search here, the engines and sbx why ask the same one.
func (in *Input) Judge() *secrets.Judge { return secrets.New(in.FS, in.Own, in.GitDir) }

// Shown returns what finds the tree of a grant that p lies in and that is searched for secrets; "" if it is none. Names
// are judged relative to it.
func (in *Input) Shown() func(p string) string {
	trees := in.shownTrees()
	return func(p string) string { return shownBy(trees, p) }
}

func shownBy(trees []shownTree, p string) string {
	best := ""
	for _, t := range trees {
		if host.Within(p, t.root) && len(t.root) >= len(best) {
			best = t.root
		}
	}
	return best
}

// shownTrees are the trees of the grants that hold what a person put there, outermost first: not what a profile shows
// of the system and of tools. Of a grant that contains the user's home it is the home.
func (in *Input) shownTrees() []shownTree {
	var tools []string
	var out []shownTree
	home := in.Facts.Home
	for i := range in.Grants {
		g := &in.Grants[i]
		if g.Mode != Read && g.Mode != Write && g.Mode != Overlay || g.Own || g.Socket || g.Source != "" || g.Closes {
			continue
		}
		canon, _, st, err := host.Resolve(in.FS, g.Path)
		if err != nil || st.Type != host.Dir || canon == in.GitDir {
			continue
		}
		switch {
		case home != "" && host.Within(home, canon):
			out = append(out, shownTree{home, g.Mode})
		case g.ofTools() && !g.Explicit && (canon != in.Project || g.Mode == Read):
			tools = append(tools, canon)
		default:
			out = append(out, shownTree{canon, g.Mode})
		}
	}
	out = slices.DeleteFunc(out, func(t shownTree) bool {
		return t.root != in.Project && slices.ContainsFunc(tools, func(tool string) bool { return host.Within(t.root, tool) })
	})
	slices.SortStableFunc(out, func(a, b shownTree) int { return strings.Compare(a.root, b.root) })
	return out
}

// ofTools says whether a grant is a profile's or a cache's: what lies there came with the system or from a registry.
func (g *Grant) ofTools() bool { return g.Why == CacheWhy || strings.HasPrefix(g.Why, ProfileWhy) }

// search hides what is found in the trees of grants.
func (v *view) search() error {
	if err := v.closed(); err != nil {
		return err
	}
	for _, p := range v.in.Unread {
		v.hideAt(p, false)
		if st, _ := v.in.FS.Lstat(p); st.Type == host.File {
			v.noteLinked(p, st)
		}
	}
	v.hideNames()
	for i := range v.in.Masked { // it is covered at its own name alone
		st, _ := v.in.FS.Lstat(v.in.Masked[i].Path)
		v.noteLinked(v.in.Masked[i].Path, st)
	}
	v.hideHardLinks()
	return v.leftOut()
}

// ServedWhy is said of a mount that is hidden because sbx looks into none of its kind.
const ServedWhy = "a program serves it and may stop answering, so nothing is looked for in it and it does not exist " +
	"inside"

// closed hides what nobody looks into, as a program serves it: it may hold hidden and guarded names.
func (v *view) closed() error {
	v.trees = v.in.shownTrees()
	for _, t := range v.trees {
		for _, m := range v.in.Facts.Foreign.ClosedIn(t.root) {
			if t.mode == Write && v.in.Bubblewrap != nil {
				return &Refusal{What: plan.Bytes(m).Quote(), Err: host.ErrForeign, Hint: "unmount it, for bwrap would wait"}
			}
			v.hideAt(m, false)
			v.losses = append(v.losses, Loss{What: plan.Bytes(m).Quote(), Price: true,
				Why: ServedWhy, Fix: "--ro or --rw with its own path shows and searches it"})
		}
	}
	return nil
}

// hideNames hides the names of secrets in every tree that a grant shows, however it is shown.
func (v *view) hideNames() {
	if v.in.NoGuard {
		return
	}
	s := searcher{view: v, judge: v.in.Judge(), seen: map[string]bool{}}
	defer s.judge.Forget()
	for _, t := range v.trees {
		s.live = t.root == v.in.Project && t.mode == Write && v.in.Facts.Fuse && !v.in.judges(t.mode)
		s.tree(t)
	}
}

// searcher looks for names of secrets within a budget of directory entries.
type searcher struct {
	*view
	judge  *secrets.Judge
	seen   map[string]bool
	budget int
	// live: the tree is served as a whole, and every name judged when it is looked up. Only other names are looked for.
	live bool
}

// What listing a directory and reading the beginning of a file take, in directory entries.
const (
	listCost     = 8
	contentsCost = 16
)

// searched is a directory on its way through a search.
type searched struct {
	path   string
	node   *node // what is granted or hidden there or below; nil for nothing
	keeper bool  // it keeps secrets: every name in it is judged
}

// tree goes through a tree level by level, so that what a person put near its top is found before the budget ends.
func (s *searcher) tree(t shownTree) {
	s.budget = s.in.budget(t.root, t.mode)
	queue := []searched{{path: t.root, node: s.root.find(t.root)}}
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]
		if s.seen[d.path] {
			continue
		}
		s.seen[d.path] = true
		list, err := s.in.list(d.path)
		if s.budget -= listCost; err != nil {
			// A whole home has such places, and nothing changes it inside.
			if !s.live && (t.mode != Read || t.root != s.in.Facts.Home) {
				s.leaveOut(d.path, err)
			}
			continue
		}
		for _, e := range list {
			if s.budget--; s.budget < 0 {
				s.cut(t.root)
				return
			}
			if e.Type == host.Socket && t.mode == Write && d.node.child(e.Name) == nil {
				s.sockets = append(s.sockets, path.Join(d.path, e.Name))
			}
			if e.Type != host.Dir && !d.keeper && guard.SecretOf(e.Name, false) == nil {
				continue
			}
			below := searched{path.Join(d.path, e.Name), d.node.child(e.Name), d.keeper}
			if s.one(t, e, &below) {
				queue = append(queue, below)
			}
		}
	}
}

// one judges a name; it says whether to go on below it.
func (s *searcher) one(t shownTree, e host.Entry, below *searched) bool {
	n := below.node
	// who grants a single file has named it
	if n != nil && (n.hidden || n.special != nil || n.granted && e.Type != host.Dir) {
		return false
	}
	if row := guard.SecretOf(e.Name, e.Type == host.Dir); row != nil || below.keeper && e.Type != host.Dir {
		if row != nil && row.Holds != nil {
			s.budget -= contentsCost
		}
		f := s.judge.At(t.root, relative(below.path, t.root))
		if f.Hidden {
			s.found(below.path)
			return false
		}
		if f.Because == secrets.Contents { // a Python environment
			return false
		}
		below.keeper = true
	}
	if e.Type == host.Dir && e.Name == ".git" && s.in.judges(t.mode) {
		list, err := s.in.list(below.path)
		s.leaveOut(below.path, err)
		for _, f := range list {
			if f.Type == host.Socket {
				s.sockets = append(s.sockets, path.Join(below.path, f.Name))
			}
		}
	}
	if e.Type != host.Dir || guard.Dependency(e.Name) || e.Name == ".git" {
		return false
	}
	return true
}

// found hides what was found. A file that has other names is a secret under each.
func (s *searcher) found(p string) {
	if st, err := s.in.FS.Lstat(p); err == nil && st.Type == host.File && st.Nlink > 1 {
		s.noteLink(p, st)
	}
	if !s.live {
		s.hideAt(p, false)
		s.root.at(p).found = true
	}
}

// cut says what a search has left out.
func (s *searcher) cut(root string) {
	l := Loss{What: "secrets deep in " + plan.Bytes(root).Quote(),
		Why: "the tree is too large to be searched for .env and key files, nor is it watched for later ones",
		Fix: "hide them by name with --hide"}
	if s.live {
		l.What = "other names (hard links) of " + l.What
	}
	s.losses = append(s.losses, l)
}

// relative is p as it is called below dir.
func relative(p, dir string) string { return strings.TrimPrefix(strings.TrimPrefix(p, dir), "/") }

// finds says whether a name of a secret was found below n.
func (n *node) finds() bool {
	return slices.ContainsFunc(n.children, func(c *node) bool { return c.found || c.finds() })
}

// live marks what is found below n: a server judges these names whenever they are looked up, so that nothing is settled
// about them here.
func (n *node) live() {
	for _, c := range n.children {
		if c.found {
			c.hidden = false
		}
		if !c.granted { // else it is shown by itself
			c.live()
		}
	}
}

// serves says whether a directory that is shown read-only is served, so that what has the name of a secret later is
// hidden as well.
func (v *view) serves(p string, n *node) bool {
	home := v.in.Facts.Home
	if !v.in.Facts.Fuse || v.in.NoGuard || v.served >= maxServedRO || home != "" && host.Within(home, p) {
		return false
	}
	root, ofProject := shownBy(v.trees, p), v.in.Project != "" && host.Within(p, v.in.Project)
	if ofProject && root != "" {
		root = v.in.Project
	}
	if root == "" || guard.SecretAt(relative(p+"/x", root), false).In != "" {
		return false
	}
	return n.finds() || ofProject
}
