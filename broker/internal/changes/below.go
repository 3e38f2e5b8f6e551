//go:build linux

package changes

import (
	"fmt"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mounted is why nothing is done at a name.
const mounted = "the host has mounted something there, which the session did not see"

// below looks through what of the host's is to go: the program may not have seen all of it.
func (s *scanner) below(c *Change, rel string, host int, name string) {
	if isMount(host, name) {
		c.Risk, c.Reason = Broken, fmt.Sprintf("%q: %s", rel, mounted)
		return
	}
	if kindOf(&c.old) != Dir {
		return
	}
	var list []string
	fd, err := openSame(host, name)
	if err == nil {
		defer unix.Close(fd)
		list, err = names(fd)
	}
	if err != nil {
		c.unreadable(fmt.Sprintf("%q: the host's directory", rel), err)
		return
	}
	if err := shut(fd); err != nil && len(list) > 0 {
		c.Risk, c.Reason = Broken, fmt.Sprintf("%q: nothing in the host's directory can be removed: %s", rel, err)
		return
	}
	for _, n := range list {
		c.Entries++
		sub := path.Join(rel, n)
		in := Change{Op: Deleted, Path: filepath.Join(s.l.Target, sub), layer: s.l, rel: sub}
		if lstatAt(fd, n, &in.old) != nil {
			continue
		}
		in.Kind = kindOf(&in.old)
		if in.Kind == File && in.old.Nlink > 1 {
			s.linked = append(s.linked, stampOf(&in.old))
		}
		if !c.Changed && s.touched(&in.old) {
			c.Changed, c.Since = true, fmt.Sprintf("the host changed %q in it after the session began", sub)
		}
		if s.judges == nil { // only counted
			in.Risk = ""
		} else if s.judge(&in, sub); in.Risk != "" && c.Risk == "" {
			c.Risk, c.Reason = in.Risk, fmt.Sprintf("%q: %s", sub, in.Reason)
		}
		deeper := Change{old: in.old}
		if s.below(&deeper, sub, fd, n); deeper.Risk == "" {
			if err := stays(fd, n, &in.old); err != nil {
				deeper.Risk, deeper.Reason = Broken, fmt.Sprintf("%q: %s", sub, err)
			}
		}
		c.Entries += deeper.Entries
		if deeper.Changed && !c.Changed {
			c.Changed, c.Since = true, deeper.Since
		}
		if deeper.Risk != "" && (c.Risk == "" || deeper.Risk == Broken && c.Risk != Broken) { // which nobody can accept
			c.Risk, c.Reason, c.Unread = deeper.Risk, deeper.Reason, deeper.Unread
		}
	}
}
