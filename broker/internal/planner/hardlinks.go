package planner

import (
	"fmt"
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// A plan hides the other names that secrets have when it is made. Whether a file that turns up later is another name
// of one is asked of request.NameGate (request/linked.go).

// Bounds of the search for other names of secret files, in directory entries.
const (
	maxScan       = 50000 // of the granted trees
	maxSecretScan = 64    // of one secret directory: keys lie in small ones
)

// LinkedWhy is said of a name that is hidden because the file has the name of a secret as well.
const LinkedWhy = "another name (hard link) of a secret, hidden too"

// linkedSecret is a secret file that has more than one name.
type linkedSecret struct {
	path string
	st   host.Stat
}

// noteLinked remembers the secret, or the files in a secret directory, that have other names.
func (v *view) noteLinked(p string, st host.Stat) {
	switch st.Type {
	case host.File:
		if st.Nlink > 1 {
			v.noteLink(p, st)
		}
	case host.Dir:
		list, err := v.in.FS.ReadDir(p)
		if err != nil || len(list) > maxSecretScan {
			return
		}
		for _, e := range list {
			if e.Type != host.File {
				continue
			}
			if s, err := v.in.FS.Lstat(path.Join(p, e.Name)); err == nil && s.Nlink > 1 {
				v.noteLink(path.Join(p, e.Name), s)
			}
		}
	}
}

// noteLink remembers one name, once: another would count as one that was found.
func (v *view) noteLink(p string, st host.Stat) {
	if !v.isLinked(p) {
		v.linked = append(v.linked, linkedSecret{p, st})
	}
}

// isLinked says whether that is one of the names.
func (v *view) isLinked(p string) bool {
	return slices.ContainsFunc(v.linked, func(l linkedSecret) bool { return l.path == p })
}

// hideHardLinks looks for the other names in the trees that are granted below the user's home, and in the
// project, and hides them too. It does nothing where no secret has another name, which is nearly always.
func (v *view) hideHardLinks() {
	if len(v.linked) == 0 {
		return
	}
	left := map[host.Inode]uint64{}
	for _, l := range v.linked {
		if left[l.st.Inode()] == 0 {
			left[l.st.Inode()] = l.st.Nlink
		}
		left[l.st.Inode()]--
	}
	budget := maxScan
	for _, g := range v.in.Grants {
		canon, _, st, err := host.Resolve(v.in.FS, g.Path)
		if err == nil && st.Type == host.Dir && v.in.Facts.Home != "" && host.Within(v.in.Facts.Home, canon) {
			canon = v.in.Facts.Home // all of it is granted
		}
		if err != nil || st.Type != host.Dir || !host.Within(canon, v.in.Facts.Home) && canon != v.in.Project && !g.Explicit {
			continue
		}
		v.scan(canon, left, &budget)
	}
	for _, l := range v.linked {
		n := v.root.find(l.path)
		if ofTree := n == nil || !n.secret; ofTree && budget > 0 { // its other names are not in what is shown
			continue
		}
		if n := left[l.st.Inode()]; n > 0 {
			v.losses = append(v.losses, Loss{What: "secret " + plan.Bytes(l.path).Quote(),
				Why: fmt.Sprintf("%d of its other names (hard links) were not found in the granted trees", n),
				Fix: "find them with find / -inum, and remove them"})
		}
	}
}

// scan walks dir without recursion and hides every name of the inodes in left.
func (v *view) scan(dir string, left map[host.Inode]uint64, budget *int) {
	stack := []string{dir}
	for len(stack) > 0 && *budget > 0 {
		d := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		list, err := v.in.list(d)
		if err != nil {
			v.leaveOut(d, err)
			continue
		}
		for _, e := range list {
			*budget--
			p := path.Join(d, e.Name)
			n := v.root.find(p)
			if n != nil && (n.hidden || n.granted && n.grant.Reveal) || v.isLinked(p) {
				continue
			}
			switch e.Type {
			case host.Dir:
				stack = append(stack, p)
			case host.File:
				s, err := v.in.FS.Lstat(p)
				if err == nil && left[s.Inode()] > 0 {
					v.hideAt(p, true)
					left[s.Inode()]--
					v.losses = append(v.losses, Loss{What: plan.Bytes(p).Quote(),
						Why: LinkedWhy, Price: true})
				}
			}
		}
	}
}
