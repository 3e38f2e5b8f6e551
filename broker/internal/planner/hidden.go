package planner

import (
	"strings"

	"sbx.example/sbx/broker/internal/guard"
)

// Hidden are the host's paths, each with all below it, that do not exist in what is granted: for whoever mounts that by
// himself. What could not be looked through is a loss.
func Hidden(in Input) ([]string, []Loss, error) {
	in.Facts.Fuse = false // nobody looks for more later
	v, err := shownAndHidden(&in)
	if err == nil {
		err = v.search()
	}
	if err != nil {
		return nil, nil, err
	}
	return v.root.hiddenNames("/"), append(in.Losses, v.losses...), nil
}

// Concealed returns what says of a path of the host's without links whether it is hidden: not so what is granted by its
// name below a hidden place, nor the way there.
func Concealed(in Input) (func(p string) bool, error) {
	v, err := shownAndHidden(&in)
	if err != nil {
		return nil, err
	}
	return v.root.conceals, nil
}

// shownAndHidden is the tree of what an input grants and hides.
func shownAndHidden(in *Input) (*view, error) {
	v := newView(in)
	for _, h := range in.Hides {
		if err := v.addHide(h); err != nil {
			return nil, err
		}
	}
	for _, g := range in.Grants {
		if g.Closes {
			continue
		}
		if err := v.addGrant(g); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Guardable says whether a writable tree may be guarded as a whole. What has the name of a guarded thing itself is not
// such a tree.
func Guardable(p string) bool {
	act := guard.Look(strings.TrimPrefix(p, "/")).Action
	return act == guard.Free || act == guard.Text
}
