//go:build linux

package gate

import (
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// state is what a place is inside.
type state uint8

const (
	unset    state = iota // as the place above
	shown                 // on something that is mounted: what is missing there is missing
	skeleton              // a directory of the sandbox's own that only leads to what is shown
	sealed                // never, whatever anybody answers
)

// View is what a plan shows, and what it does not. It never changes; what is granted later is the engines' to know.
type View struct {
	root  place
	files map[host.Inode]bool
	errno syscall.Errno
	names func(p string) bool
	fuse  []string // served by this process, at their own path
	binds []string // what is mounted by itself, as the host knows it
	once  sync.Once
	doors map[host.Inode]bool // the sockets among them
}

type place struct {
	state    state
	children map[string]*place
}

// NewView makes the view of a plan. hidden are the paths that must stay out of sight with everything below them, files
// the identities of hidden files that have further names. Names says whether what stands at a path that the plan does
// not show has the name of a secret.
func NewView(p *plan.Plan, hidden []string, files []host.Inode, names func(p string) bool) *View {
	v := &View{root: place{state: skeleton}, errno: syscall.ENOENT, names: names}
	for _, h := range hidden {
		v.root.at(h).state = sealed
	}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if s := stateOf(m); s != unset && m.Target != "/" {
			v.root.at(m.Target).state = s
		}
		if m.Kind == plan.Bind && !m.Device {
			v.binds = append(v.binds, m.Source)
		}
		if m.Kind == plan.Fuse && m.Source == m.Target {
			v.fuse = append(v.fuse, m.Target)
		}
		for _, h := range m.Hide {
			v.root.at(m.Target + "/" + h).state = sealed
		}
	}
	if len(files) > 0 {
		v.files = make(map[host.Inode]bool, len(files))
		for _, f := range files {
			v.files[f] = true
		}
	}
	return v
}

// Reveal takes single secret files out of what must stay out of sight: each is asked about, or decided by rules.
func (v *View) Reveal(files []string) {
	for _, p := range files {
		v.root.at(p).state = skeleton
	}
}

func stateOf(m *plan.Mount) state {
	switch m.Kind {
	case plan.Dir:
		return skeleton
	case plan.Tmpfs:
		if m.Why == "skeleton" {
			return skeleton
		}
		return shown
	case plan.Bind, plan.Overlay, plan.Fuse, plan.Proc, plan.Devpts, plan.Mqueue, plan.Symlink:
		return shown
	}
	return unset
}

func (n *place) at(p string) *place {
	for name := range strings.SplitSeq(p, "/") {
		if name == "" {
			continue
		}
		c := n.children[name]
		if c == nil {
			c = &place{}
			if n.children == nil {
				n.children = map[string]*place{}
			}
			n.children[name] = c
		}
		n = c
	}
	return n
}

// look returns the state of a path and the place itself, nil where nothing is known about what is below.
func (v *View) look(p string) (state, *place) {
	n, s := &v.root, v.root.state
	for name := range strings.SplitSeq(p, "/") {
		if name == "" {
			continue
		}
		if n = n.children[name]; n == nil {
			return s, nil
		}
		if n.state != unset {
			s = n.state
		}
	}
	return s, n
}

// Planned says whether the plan makes something at p or below it, and whether below it.
func (v *View) Planned(p string) (at, below bool) {
	_, n := v.look(p)
	return n != nil, n != nil && len(n.children) > 0
}

// Visible says whether p lies on something mounted inside, so that what is missing there is missing.
func (v *View) Visible(p string) bool {
	s, _ := v.look(p)
	return s == shown
}

// Gated says whether p is the host's and may be asked for.
func (v *View) Gated(p string) bool {
	s, _ := v.look(p)
	return s == skeleton
}

// Denied says whether p is never given, with the errno that says so.
func (v *View) Denied(p string) (bool, syscall.Errno) {
	if s, _ := v.look(p); s == sealed || s == skeleton && v.names(p) {
		return true, v.errno
	}
	return false, 0
}

// Whole says whether nothing below the directory p is hidden.
func (v *View) Whole(p string) bool {
	s, n := v.look(p)
	return s != sealed && !n.seals()
}

func (n *place) seals() bool {
	if n == nil {
		return false
	}
	for _, c := range n.children {
		if c.state == sealed || c.seals() {
			return true
		}
	}
	return false
}

// Door says whether a socket is one that the plan grants by itself: it was asked for, and stands there with or without
// a filter.
func (v *View) Door(f host.Inode) bool {
	v.once.Do(func() {
		v.doors = map[host.Inode]bool{}
		for _, p := range v.binds {
			var st unix.Stat_t
			if unix.Lstat(p, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
				v.doors[host.Inode{Dev: uint64(st.Dev), Ino: st.Ino}] = true
			}
		}
	})
	return v.doors[f]
}

// Served lists the directories that this process serves through FUSE.
func (v *View) Served() []string { return v.fuse }

// Aliased says whether there are hidden files with further names.
func (v *View) Aliased() bool { return len(v.files) > 0 }

// Secret says whether a file is one that is hidden under another name.
func (v *View) Secret(f host.Inode) bool { return v.files[f] }
