//go:build linux

package bwrap

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/gate/gatefs"
	"sbx.example/sbx/broker/internal/gate/served"
	hosts "sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// serve answers for a directory of the host's that shows more names than it has. All else in it is the host's. It also
// has answered for what the words hide.
func (m *monitor) serve(c *child.Child, at *plan.Mount, fd int) (err error) {
	p := m.plan
	if at.Kind == plan.AskServer {
		read, write := shown(m.r.ops)
		return m.asks.ServeAsked(c, p, read, write, m.record, Name+"-"+m.record.id, places(p), fd)
	}
	var o gatefs.Options
	t := treeOf(p, at)
	if m.under != nil {
		if o, err = m.under.Guard(c.PID, at, &t.Dirs[0]); err != nil {
			return err
		}
	}
	o.Root, o.Owner = at.Target, gatefs.Owner{UID: p.Identity.InsideUID, GID: p.Identity.InsideGID}
	o.Covered, o.Alone, o.OwnerOnly = covered(p, at), true, true
	s, err := gatefs.New(fd, t, o)
	if err != nil {
		return err
	}
	go s.Serve()
	return nil
}

// hasServer says whether p has a file system that this process answers for.
func hasServer(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Mounts, func(m plan.Mount) bool {
		return m.Kind == plan.Fuse || m.Kind == plan.AskServer
	})
}

// servedAs makes sure that a user of process 1's user namespace, whose map others have written (--userns,
// --userns-block-fd), is this process's: whom the server takes for its own user has his rights. It is asked while
// process 1 waits for its plan, which may have it make a namespace of its own.
func servedAs(pid int, uid uint32) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		var inside, outside, count uint32
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && uid-inside < count &&
			outside+(uid-inside) == uint32(os.Geteuid()) {
			return nil
		}
	}
	return fail("Can't serve a directory: user %d of the user namespace is not the caller", uid)
}

// inside is p's path in the directory at top, "" if it is not there.
func inside(p, top string) string {
	switch {
	case p == top:
		return "/"
	case top == "/":
		return p
	}
	if rel, ok := strings.CutPrefix(p, top+"/"); ok {
		return "/" + rel
	}
	return ""
}

// treeOf are the names that m shows whatever the host has. What an earlier mount has covered, m opens again.
func treeOf(p *plan.Plan, m *plan.Mount) served.Tree {
	t, opened := served.Tree{}, opens(p, m)
	for _, d := range p.Bubblewrap.Served {
		rel := inside(string(d.Path), m.Target)
		if rel == "" {
			continue
		}
		dir := served.Dir{Path: rel, Host: strings.TrimSuffix(m.Source+rel, "/"), Kind: served.Guarded}
		for _, n := range d.Names {
			if at := path.Join(string(d.Path), string(n.Name)); opened[at] && hosts.Exists(path.Join(dir.Host, string(n.Name))) {
				continue
			}
			c := served.Child{Name: string(n.Name), Kind: served.Covered, Dir: n.Kind == plan.Dir}
			if n.Kind == plan.Symlink {
				c.Kind, c.Target = served.Symlink, string(n.Target)
			}
			dir.Children = append(dir.Children, c)
		}
		t.Dirs = append(t.Dirs, dir)
	}
	return t
}

// opens are the places in m that something was mounted on before m, and nothing since.
func opens(p *plan.Plan, m *plan.Mount) map[string]bool {
	out, since := map[string]bool{}, false
	for i := range p.Mounts {
		at := p.Mounts[i].Target
		switch {
		case &p.Mounts[i] == m:
			since = true
		case since:
			delete(out, at)
		default:
			out[at] = true
		}
	}
	return out
}

// covered are the directories of m that something else is mounted on.
func covered(p *plan.Plan, m *plan.Mount) map[string]bool {
	out, opened := map[string]bool{}, opens(p, m)
	for i := range p.Mounts {
		at := p.Mounts[i].Target
		if rel := inside(at, m.Target); rel != "" && rel != "/" && !opened[at] {
			out[rel] = true
		}
	}
	return out
}

// doors are what of a directory does not work through a file server: sockets and pipes.
func doors(dir string) (out []string, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	for _, e := range list {
		if e.Type()&(os.ModeSocket|os.ModeNamedPipe) != 0 {
			out = append(out, e.Name())
		}
	}
	return out, err
}

// hasFuse says whether a directory can be served.
func hasFuse() bool { return unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) == nil }
