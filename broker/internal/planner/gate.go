package planner

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// gate turns a root of the sandbox's own, made of directories, links and files to mount on, into the description of one
// that the broker serves. What is mounted stays as it was; what is not there exists now, and its first access asks.
func (v *view) gate(ops []plan.Mount) ([]plan.Mount, *plan.Gate) {
	g := &gateView{view: v, dirs: map[string]*plan.GateDir{"/": {Path: "/"}}}
	out := []plan.Mount{{Kind: plan.Fuse, Target: "/", Access: plan.ReadWrite, Why: "gate"}}
	for i := 1; i < len(ops); i++ {
		if !g.enter(&ops[i]) {
			out = append(out, ops[i])
		}
	}
	g.hide("/", &v.root)
	gate := &plan.Gate{}
	places := map[string]int{}
	for _, d := range g.dirs {
		if d.Path != "/" {
			places[path.Dir(string(d.Path))]++
		}
	}
	for _, d := range g.dirs {
		p := string(d.Path)
		d.Ask = !d.Place && (!v.hiddenAt(p) || v.root.at(p).leads)
		if d.Place {
			d.Names = nil
		}
		d.List = d.Ask && (v.asksIn(p) || places[p] >= listFrom || v.holdsSocket(string(d.Path)))
		slices.SortFunc(d.Names, func(a, b plan.GateName) int { return strings.Compare(string(a.Name), string(b.Name)) })
		gate.Dirs = append(gate.Dirs, *d)
	}
	slices.SortFunc(gate.Dirs, func(a, b plan.GateDir) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return out, gate
}

// listFrom is the number of directories in a directory from which listing it is cheaper than finding each.
const listFrom = 5

// holdsSocket says whether a socket of the host lies in dir: connect(2) reaches the broker only as a lookup, which can
// wait only if the kernel knows the name already.
func (v *view) holdsSocket(dir string) bool {
	list, _ := v.in.FS.ReadDir(dir)
	return slices.ContainsFunc(list, func(e host.Entry) bool { return e.Type == host.Socket })
}

type gateView struct {
	*view
	dirs map[string]*plan.GateDir
}

// enter notes what an operation does to the root; it reports whether that makes the operation superfluous.
func (g *gateView) enter(m *plan.Mount) bool {
	p := m.Target
	parent := g.dirs[path.Dir(p)]
	onRoot := parent != nil && !parent.Place
	name := plan.GateName{Name: plan.Bytes(path.Base(p))}
	switch m.Kind {
	case plan.Dir:
		if onRoot && g.dirs[p] == nil {
			g.dirs[p] = &plan.GateDir{Path: plan.Bytes(m.Target)}
		}
		return onRoot
	case plan.File:
		name.Kind, name.Access = plan.File, plan.ReadOnly
	case plan.Symlink:
		name.Kind, name.Target = plan.Symlink, plan.Bytes(m.Source)
	case plan.Remount:
		return p == "/"
	case plan.Protect, plan.Judged, plan.Mask:
		return false
	default:
		if d := g.dirs[p]; d != nil {
			d.Place = true
		} else if onRoot {
			for i := range parent.Names {
				if n := &parent.Names[i]; n.Name == name.Name && n.Kind == plan.File {
					n.Access = m.Access
				}
			}
		}
		return false
	}
	if onRoot {
		parent.Names = append(parent.Names, name)
	}
	return onRoot
}

// hide enters the hidden names of directories that are served. A directory on the way to one is served as well: it
// cannot be mounted whole later.
func (g *gateView) hide(p string, n *node) {
	if d := g.dirs[p]; d == nil || d.Place {
		return
	}
	for _, c := range n.children {
		cp := path.Join(p, c.name)
		d := g.dirs[cp]
		switch {
		case c.hidden && !c.ask && !c.leads && d == nil:
			g.absent(p, c.name)
			continue
		case c.hides() && d == nil && c.link == "":
			if st, err := g.in.FS.Lstat(cp); err != nil || st.Type != host.Dir {
				continue
			}
			g.dirs[cp] = &plan.GateDir{Path: plan.Bytes(cp)}
		}
		g.hide(cp, c)
	}
}

func (g *gateView) absent(dir, name string) {
	d := g.dirs[dir]
	for _, n := range d.Names {
		if string(n.Name) == name {
			return
		}
	}
	d.Names = append(d.Names, plan.GateName{Name: plan.Bytes(name), Kind: plan.Absent})
}

// hiddenAt says whether p or a directory above it is hidden, whatever of it is shown by name.
func (v *view) hiddenAt(p string) bool {
	n := &v.root
	for _, name := range strings.Split(strings.Trim(p, "/"), "/") {
		if n = n.child(name); n == nil {
			return false
		}
		if n.hidden && !n.ask {
			return true
		}
	}
	return false
}

// gateRules are the places where an answer may allow writing: a rule set cannot grow, so what is not covered from the
// start stays refused by Landlock whatever is answered. Those are the top directories that ask and in which the user
// could have something; a rule for the root would cover everything.
func (in *Input) gateRules(p *plan.Plan, access uint64) (out []plan.LandlockRule) {
	for _, top := range in.writableTops(p.Gate, p.Mounts) {
		out = append(out, plan.LandlockRule{Path: plan.Bytes(top), Access: access})
	}
	return out
}

func (in *Input) writableTops(gate *plan.Gate, mounts []plan.Mount) (out []string) {
	asks, named := map[string]bool{}, map[string]bool{}
	if gate == nil {
		asks["/"] = true
	} else {
		for _, d := range gate.Dirs {
			asks[string(d.Path)] = d.Ask
			for _, n := range d.Names {
				named[path.Join(string(d.Path), string(n.Name))] = true
			}
		}
	}
	for i := range mounts {
		if p := mounts[i].Target; gate == nil && mounts[i].Kind == plan.Dir {
			asks[p] = !slices.ContainsFunc(in.Hides, func(h Hide) bool { return !h.Ask && host.Within(p, h.Path) })
		} else {
			named[p] = true
		}
	}
	home := in.Facts.Home
	add := func(p string) { out = append(out, p) }
	list, _ := in.FS.ReadDir("/")
	for _, e := range list {
		top := "/" + e.Name
		if ask, ok := asks[top]; e.Type != host.Dir || named[top] || ok && !ask || !ok && !asks["/"] ||
			slices.Contains(systemTops(), e.Name) {
			continue
		}
		// What is empty has nothing that could be written, unless it is the user's: most of these are on most machines.
		if st, err := in.FS.Lstat(top); host.Within(home, top) || err == nil && (st.Nlink != 2 || st.UID == in.Facts.UID ||
			st.Perm&0o002 != 0) {
			add(top)
		}
	}
	if asks[home] && home != "/" && !slices.ContainsFunc(out, func(top string) bool { return host.Within(home, top) }) {
		add(home)
	}
	return out
}

// landings makes the places of gateRules exist from the start where the root is not served: a rule is about a
// directory, not about a name.
func (in *Input) landings(mounts []plan.Mount) []plan.Mount {
	have := map[string]bool{}
	for i := range mounts {
		have[mounts[i].Target] = true
	}
	var more []plan.Mount
	for _, top := range in.writableTops(nil, mounts) {
		if !have[top] {
			more = append(more, plan.Mount{Kind: plan.Dir, Target: top, Mode: 0o755, Why: "skeleton"})
		}
	}
	return slices.Insert(mounts, 1, more...)
}

// systemTops are the top directories that are never written by answer.
func systemTops() []string {
	return []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "lost+found", "proc", "root", "run",
		"sbin", "sys", "tmp", "usr"}
}
