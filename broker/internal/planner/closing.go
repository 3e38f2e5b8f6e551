package planner

import (
	"strings"

	"sbx.example/sbx/broker/internal/host"
)

// addClosing adds the grants that make less of a place: the last, when it is known what is shown. They would show what
// is hidden otherwise, as a grant below a hidden name and of a file with the name of a secret does.
func (v *view) addClosing() error {
	for _, g := range v.in.Grants {
		if !g.Closes {
			continue
		}
		if canon, _, _, err := host.Resolve(v.in.FS, g.Path); err != nil || canon == "" || !v.shown(canon) {
			continue
		}
		if err := v.checkGrant(g); err != nil {
			return err
		}
		if err := v.addGrant(g); err != nil {
			return err
		}
	}
	return nil
}

// shown says whether a canonical path is in what is granted of the host: the innermost word about it grants that, and
// it has no name of a secret that is hidden in such a tree.
func (v *view) shown(p string) bool {
	n, shown := &v.root, v.root.granted && v.root.mode != Scratch
	for name := range strings.SplitSeq(p[1:], "/") {
		if n = n.child(name); n == nil {
			break
		}
		if n.granted {
			shown = n.mode != Scratch && !n.missing
		}
		shown = shown && !n.hidden
	}
	top := shownBy(v.trees, p)
	if !shown || top == "" || p == top {
		return shown
	}
	if n := v.root.find(p); n != nil && n.granted {
		return true // who grants a single file has named it
	}
	return !v.in.Judge().At(top, relative(p, top)).Hidden
}
