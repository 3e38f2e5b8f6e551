package planner

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// judges says whether the broker can carry out what changes a tree that is mounted natively. Containers would reach
// it with the rights of subordinate ids.
func (in *Input) judges(mode Mode) bool {
	return mode == Write && in.Judging != nil && in.Containers == nil
}

// judged mounts a guarded directory as it is. The kernel shows it read-only and the broker carries out what changes
// it, by what it decides about each name, so that guarded names hold at every depth. A directory that holds a hidden
// name is served on top of that: there the name does not exist, whatever the host does to it.
func (v *view) judged(p string, n *node, g Grant) error {
	holders := v.holders(p, n)
	if v.in.Nested { // in a mount namespace of its own a path means something else, and nothing is carried out
		holders = []string{p}
	}
	served := len(holders) == 0
	if v.in.Facts.Fuse && !served {
		served = v.room(p, len(holders))
		if !served && v.room(p, 1) { // one that holds them all
			holders, served = []string{p}, true
		}
	}
	names := n.hiddenNames("")
	if served {
		n.live()
	}
	v.bind(p, Write, g)
	below := host.Below(v.in.Facts.Mounts, p)
	slices.SortFunc(below, func(a, b string) int { return strings.Compare(b, a) })
	for _, m := range below { // the deepest first: what is covered later is covered with all that lies on it
		if st, err := v.in.FS.Lstat(m); err == nil && st.Type == host.Dir && v.in.Facts.Foreign.Closed(m) == "" {
			v.judgedAt(m, nil)
		}
	}
	v.judgedAt(p, n.hiddenNames(""))
	if v.in.Direct {
		why, fix := v.notServed()
		v.losses = append(v.losses, Loss{What: "late secrets in " + plan.Bytes(p).Quote(),
			Why: why + ", so a secret that the host puts there while the session runs is seen", Fix: fix})
	}
	if !served && v.in.InPlace { // see granter
		v.mask(p, names)
		return v.below(p, n)
	}
	if !served {
		v.coverNames(p, names)
		v.coverSockets(p, nil)
		return v.below(p, n)
	}
	for _, dir := range holders {
		v.serve(dir, v.root.find(dir), Write, g)
	}
	v.coverSockets(p, holders)
	return v.below(p, n)
}

// judgedAt covers one mount of a tree. Where the sandbox does not hand it over, the broker takes it on the host and
// compares it with what was planned.
func (v *view) judgedAt(p string, hide []string) {
	m := plan.Mount{Kind: plan.Judged, Target: p, Access: plan.ReadOnly, Hide: hide, Why: "guarded"}
	if st, err := v.in.FS.Lstat(p); err == nil && (v.in.Direct || v.in.InPlace) {
		m.Dev, m.Ino = st.Dev, st.Ino
	}
	v.op(m)
}

// coverSockets covers the host's sockets in a tree: that it is read-only keeps nobody from connecting. Where it is
// served, nobody can.
func (v *view) coverSockets(p string, served []string) {
	for _, s := range v.sockets {
		in := func(dir string) bool { return host.Within(s, dir) }
		if in(p) && (!slices.ContainsFunc(served, in) || slices.ContainsFunc(v.native, in)) {
			v.late = append(v.late, plan.Mount{Kind: plan.Mask, Target: s, Optional: true, Why: SocketWhy})
		}
	}
}

// holders are the outermost directories of a tree that hold a hidden name, whether the host has it yet or not.
func (v *view) holders(p string, n *node) []string {
	var out []string
	for _, c := range n.children {
		if c.hidden {
			return []string{p}
		}
		if c.granted || !c.hides() {
			continue
		}
		child := path.Join(p, c.name)
		if st, err := v.in.FS.Lstat(child); err != nil || st.Type != host.Dir {
			return []string{p}
		}
		out = append(out, v.holders(child, c)...)
	}
	return out
}
