package planner

import (
	"strings"

	"sbx.example/sbx/broker/internal/guard"
)

// Hidden are the host's paths, each with all below it, that do not exist in what is granted: for whoever mounts that by
// himself. What could not be looked through is a loss.
func Hidden(in Input) ([]string, []Loss, error) {
	in.Facts.Fuse = false // nobody looks for more later
	v := newView(&in)
	for _, h := range in.Hides {
		if err := v.addHide(h); err != nil {
			return nil, nil, err
		}
	}
	for _, g := range in.Grants {
		if g.Closes {
			continue
		}
		if err := v.addGrant(g); err != nil {
			return nil, nil, err
		}
	}
	if err := v.search(); err != nil {
		return nil, nil, err
	}
	return v.root.hiddenNames("/"), append(in.Losses, v.losses...), nil
}

// Guardable says whether a writable tree may be guarded as a whole. What has the name of a guarded thing itself is not
// such a tree.
func Guardable(p string) bool {
	act := guard.Look(strings.TrimPrefix(p, "/")).Action
	return act == guard.Free || act == guard.Text
}
