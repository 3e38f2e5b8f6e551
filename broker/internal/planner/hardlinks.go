package planner

import (
	"fmt"
	"path"

	"sbx/broker/internal/host"
	"sbx/shared/plan"
)

// maxScan bounds the search for other names of a secret, in directory entries.
const maxScan = 50000

// hideHardLinks looks for other names of the secret file in the trees that are granted below the
// user's home and hides them too. It runs only for a file that has such names.
func (v *view) hideHardLinks(secret string, st host.Stat) {
	left := int(st.Nlink) - 1
	budget := maxScan
	for _, g := range v.in.Grants {
		canon, _, gst, err := host.Resolve(v.in.FS, g.Path)
		if err != nil || gst.Dev != st.Dev || gst.Type != host.Dir || v.in.Facts.Home == "" || !within(canon, v.in.Facts.Home) && canon != v.in.Project {
			continue
		}
		left -= v.scan(canon, secret, st, &budget)
		if left <= 0 {
			return
		}
	}
	v.losses = append(v.losses, Loss{What: "secret " + plan.Bytes(secret).Quote(),
		Why: fmt.Sprintf("it has %d other names (hard links) that were not all found in the granted trees", left),
		Fix: "find / -inum and remove them"})
}

// scan walks dir without recursion and hides every name of the inode. It returns how many it found.
func (v *view) scan(dir, secret string, st host.Stat, budget *int) int {
	found := 0
	stack := []string{dir}
	for len(stack) > 0 && *budget > 0 {
		d := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		list, err := v.in.FS.ReadDir(d)
		if err != nil {
			continue
		}
		for _, e := range list {
			*budget--
			p := path.Join(d, e.Name)
			switch e.Type {
			case host.Dir:
				if n := v.root.find(p); n == nil || !n.hidden {
					stack = append(stack, p)
				}
			case host.File:
				if s, err := v.in.FS.Lstat(p); err == nil && s.Ino == st.Ino && s.Dev == st.Dev && p != secret {
					v.hideAt(p, true)
					found++
				}
			}
		}
	}
	return found
}
