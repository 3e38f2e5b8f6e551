//go:build linux

package writes

import (
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
)

// place is what a path leads to, and all below it to the next.
type place struct {
	*root       // nil: to none of the trees
	look   bool // somebody else serves it: it is looked at for links that lead to a tree, and for what reaches into it
	native bool // the tree itself, mounted on what is served
	// rel and id are those of the directory of the tree that it is mounted on: the mount goes where that goes.
	rel string
	id  guard.ID
}

// find finds the place that a clean path lies in.
func (k *Carrier) find(abs string) place { return k.at[k.mountAt(abs)] }

// mountAt is where the mount of such a place is; "" for no place.
func (k *Carrier) mountAt(abs string) string {
	for p := abs; p != ""; p = p[:strings.LastIndexByte(p, '/')] {
		if at, ok := k.at[p]; ok && k.lies(at) {
			return p
		}
	}
	return ""
}

// lies says whether a place is what is mounted there still. When the host puts another directory there, the mount goes
// with the one before, and the other one is a part of what lies around it.
func (k *Carrier) lies(at place) bool {
	return at.id == (guard.ID{}) || idOf(at.fd, at.rel) == at.id
}

// rootOf is the tree that a clean path lies in, whoever serves it there; nil for none.
func (k *Carrier) rootOf(abs string) *root {
	for p := abs; p != ""; p = p[:strings.LastIndexByte(p, '/')] {
		if at, ok := k.at[p]; ok {
			return at.root
		}
	}
	return nil
}

// under finds the tree that a clean path lies in, if the call is carried out there.
func (j *job) under(abs string) *root {
	if p := j.find(abs); !j.leaves(p) {
		return p.root
	}
	return nil
}

// leaves says whether a call is left to whoever serves a place.
func (j *job) leaves(p place) bool { return p.look && !j.reach }

// served says whether somebody else serves the place of a name, beside whom this call is carried out at most.
func (k *Carrier) served(n *name) bool { return k.find(path.Dir(n.abs())).look }

// theirs says whether a name is its server's alone: it is in a place that is served, and no part of the tree is mounted
// on it or below. A directory on the way that may be hidden is theirs as well.
func (j *job) theirs(n *name) bool {
	dir, _ := n.split()
	return j.served(n) && (!j.mounted(n.abs(), true) || !n.root.judge.shows(dir))
}

// pins says whether a directory must stay where it is, because something else is mounted on it or in it.
func (k *Carrier) pins(abs string) bool { return k.mounted(abs, false) }

// mounted says whether parts of the tree, or other things, are mounted on a path or below.
func (k *Carrier) mounted(abs string, native bool) bool {
	for p, at := range k.at {
		if at.native == native && within(p, abs) && k.lies(at) {
			return true
		}
	}
	return false
}

func within(p, dir string) bool {
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// holds says whether a clean path leads to one of the trees: such directories are the sandbox's own, and no links.
func (k *Carrier) holds(abs string) bool {
	for i := range k.roots {
		if abs == "/" || within(k.roots[i].Path, abs) {
			return true
		}
	}
	return false
}

// clean is path.Clean, which keeps a path that is clean already where it is.
func clean(p string) string { return path.Clean(p) }
