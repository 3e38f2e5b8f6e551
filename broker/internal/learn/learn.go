// Package learn turns the accesses of a recorded run into the smallest policy that a person would write for it.
// It must never write a rule that covers a whole home, a top directory or the root, whatever was accessed.
// `sbx run --learn` gives it what a session saw and stores the text for review.
package learn

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/program"
)

// Access is one thing that the program did, or wanted to do, beyond what its profile grants.
type Access struct {
	Kind    policy.Kind
	Path    string
	Host    string
	Port    int
	Access  policy.Access
	Exe     string
	Tree    bool // the path is a directory that was opened with all that is in it
	Refused bool // it was not let through while learning
	// Base is the directory before the first name that will be another the next time, see ComesBack. It is empty where
	// there is no such name.
	Base string
}

// Options say whose run it was.
type Options struct {
	Vars    policy.Vars
	Command []string // printable
	Now     time.Time
	// There says whether a path is on the host after the run: what still is there comes back whatever its name looks like.
	There func(path string) bool
}

// Bounds of what makes a directory a rule of its own.
const (
	enoughNames = 4 // names in one directory
	enoughDeep  = 8 // paths below it, in at least
	enoughDirs  = 3 // of its directories
)

// Policy writes the rules with comments. The list may hold an access any number of times.
func Policy(list []Access, o Options) (text string, rules []policy.Rule) {
	w := writer{o: o, by: map[string]map[string]bool{}, passing: map[string]bool{}}
	reads, writes := newNode(), newNode()
	hosts, sockets := map[string]Access{}, map[string]Access{}
	refused := false
	for _, a := range list {
		a, ok := w.lasting(a)
		switch {
		case !ok:
			continue
		case a.Kind == policy.KindHost:
			hosts[fmt.Sprintf("%s:%d", a.Host, a.Port)] = a
		case a.Kind == policy.KindSocket:
			sockets[a.Path] = a
		case a.Access == policy.Write:
			writes.add(a.Path, a.Tree)
			refused = refused || a.Refused
		default:
			reads.add(a.Path, a.Tree)
		}
		w.note(a)
	}
	w.toolchains(reads)
	for _, x := range []struct {
		tree   *node
		access policy.Access
		head   string
	}{{reads, policy.Read, "read"}, {writes, policy.Write, "written"}} {
		before := len(w.rules)
		w.tree("/", x.tree, x.access)
		if len(w.rules) > before {
			w.heads = append(w.heads, head{before, x.head})
		}
	}
	w.rest(hosts, sockets)
	return w.text(refused), w.rules
}

// node is a directory of a tree of paths.
type node struct {
	children map[string]*node
	end      bool // the path itself was accessed
	whole    bool // with all that is in it
}

func newNode() *node { return &node{children: map[string]*node{}} }

func (n *node) add(p string, whole bool) {
	for _, c := range strings.Split(strings.Trim(p, "/"), "/") {
		if c == "" {
			continue
		}
		if n.children[c] == nil {
			n.children[c] = newNode()
		}
		n = n.children[c]
	}
	n.end, n.whole = true, n.whole || whole
}

// cut takes out what is at p and below it, and says whether there was anything.
func (n *node) cut(p string) bool {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	for _, c := range parts[:len(parts)-1] {
		if n = n.children[c]; n == nil {
			return false
		}
	}
	last := parts[len(parts)-1]
	_, ok := n.children[last]
	delete(n.children, last)
	return ok
}

func (n *node) paths() int {
	sum := 0
	if n.end {
		sum = 1
	}
	for _, c := range n.children {
		sum += c.paths()
	}
	return sum
}

func (n *node) names() []string {
	out := make([]string, 0, len(n.children))
	for name := range n.children {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

type head struct {
	at   int
	text string
}

type writer struct {
	o     Options
	rules []policy.Rule
	heads []head
	by    map[string]map[string]bool // path or host: programs
	// passing are directories in which there were only names that will be others the next time, and which are too much to
	// be allowed as a whole.
	passing map[string]bool
}

// lasting puts the directory in the place of a name that was made for this run. It says no where no rule can name it.
func (w *writer) lasting(a Access) (Access, bool) {
	if a.Base == "" || w.o.There(a.Path) {
		return a, true
	}
	if a.Kind != policy.KindPath || !w.mayBeWhole(a.Base) {
		w.passing[a.Base] = true
		return a, false
	}
	a.Path, a.Tree = a.Base, true
	return a, true
}

func (w *writer) note(a Access) {
	k := a.Path
	if a.Kind == policy.KindHost {
		k = a.Host
	}
	if w.by[k] == nil {
		w.by[k] = map[string]bool{}
	}
	w.by[k][program.Name(a.Exe)] = true
}

// programs names who accessed what lies at or below p.
func (w *writer) programs(p string) string {
	seen := map[string]bool{}
	for k, set := range w.by {
		if k == p || strings.HasPrefix(k, strings.TrimSuffix(p, "/")+"/") {
			for name := range set {
				seen[name] = true
			}
		}
	}
	var names []string
	for name := range seen {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	if len(names) > 4 {
		names = append(names[:4], "others")
	}
	return "learned: " + strings.Join(names, ", ")
}

func (w *writer) add(kind policy.Kind, pattern string, access policy.Access, reason string) {
	r, err := policy.NewRule(policy.Rule{Kind: kind, Pattern: pattern, Access: access, Decision: policy.Allow,
		Reason: reason}, w.o.Vars)
	if err == nil {
		w.rules = append(w.rules, r)
	}
}

func (w *writer) pattern(p string) string { return w.o.Vars.Short(pathname.Escape(p)) }

// toolchains writes one rule for every toolchain of which anything was read.
func (w *writer) toolchains(reads *node) {
	before := len(w.rules)
	for _, t := range w.roots(reads) {
		if reads.cut(t.path) {
			w.add(policy.KindPath, w.pattern(t.path)+"/**", policy.Read, t.what)
		}
	}
	if len(w.rules) > before {
		w.heads = append(w.heads, head{before, "toolchains"})
	}
}

// tree writes rules for what lies below p: the narrowest directories in which much was touched, and single paths.
func (w *writer) tree(p string, n *node, a policy.Access) {
	whole := p != "/" && w.mayBeWhole(p) && (n.whole || much(n))
	if n.end && len(n.children) == 0 || whole {
		pattern := w.pattern(p)
		if whole {
			pattern += "/**"
		}
		w.add(policy.KindPath, pattern, a, w.programs(p))
		return
	}
	if n.end && p != "/" {
		w.add(policy.KindPath, w.pattern(p), a, w.programs(p)) // the directory itself: looked at or listed
	}
	for _, name := range n.names() {
		w.tree(path.Join(p, name), n.children[name], a)
	}
}

func much(n *node) bool {
	return len(n.children) >= enoughNames || len(n.children) >= enoughDirs && n.paths() >= enoughDeep
}

// mayBeWhole keeps homes, what lies above them, top directories and directories of homes' first level that hold
// everything (~/.config, ~/.local/share) from becoming one rule.
func (w *writer) mayBeWhole(p string) bool {
	home, project := w.o.Vars.Home, w.o.Vars.Project
	switch {
	case strings.Count(p, "/") < 2, p == home, path.Dir(p) == "/home", strings.HasPrefix(home, p+"/"),
		strings.HasPrefix(project, p+"/"):
		return false
	}
	for _, d := range [...]string{"/.config", "/.local", "/.local/share", "/.local/state", "/.cache", "/Documents",
		"/Desktop", "/Downloads", "/src", "/code", "/work", "/projects"} {
		if home != "" && p == home+d {
			return false
		}
	}
	for _, d := range [...]string{"/var/lib", "/var/cache", "/usr/local", "/run/user", "/etc/ssl", "/proc/sys",
		"/sys/class"} {
		if p == d {
			return false
		}
	}
	return true
}

func (w *writer) rest(hosts, sockets map[string]Access) {
	before := len(w.rules)
	var names []string
	for name := range hosts {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		w.add(policy.KindHost, hostPattern(hosts[name]), policy.Connect, w.programs(hosts[name].Host))
	}
	names = names[:0]
	for name := range sockets {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		w.add(policy.KindSocket, w.pattern(name), policy.Connect, w.programs(name))
	}
	if len(w.rules) > before {
		w.heads = append(w.heads, head{before, "connections"})
	}
}

func hostPattern(a Access) string {
	h := a.Host
	if strings.Contains(h, ":") {
		h = "[" + h + "]"
	}
	if a.Port == 0 {
		return h
	}
	return fmt.Sprintf("%s:%d", h, a.Port)
}

func (w *writer) text(refused bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Learned by sbx run --learn on %s from: %s\n", w.o.Now.UTC().Format("2006-01-02 15:04"),
		strings.Join(w.o.Command, " "))
	b.WriteString("# Read it, take out what the program should not have, then: sbx policy import policy FILE\n")
	b.WriteString("# Not in it: what the profile grants anyway, and secrets, which no rule shows.\n")
	if refused {
		b.WriteString("# What would have been written outside was refused while learning; its rules are here for you to " +
			"decide.\n")
	}
	for _, dir := range slices.Sorted(maps.Keys(w.passing)) {
		fmt.Fprintf(&b, "# No rule: names that are others each time, in %+q, which is too much to allow as a whole.\n",
			w.pattern(dir))
	}
	b.WriteString("version = 1\n")
	heads := w.heads
	for i, r := range w.rules {
		if len(heads) > 0 && heads[0].at == i {
			b.WriteString("\n# " + heads[0].text + "\n")
			heads = heads[1:]
		}
		b.WriteString(edit.FormatRule(r))
	}
	return b.String()
}
