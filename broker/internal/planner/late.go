package planner

import "sbx.example/sbx/broker/plan"

// Reach is how many directories of a tree the search for secrets lists.
func (in *Input) Reach(top string) int { return in.budget(top, Read) / listCost }

// budget is how many directory entries of a tree are searched.
func (in *Input) budget(top string, mode Mode) int {
	switch {
	case top == in.Facts.Home:
		return homeBudget
	case mode == Overlay || in.judges(mode):
		return writtenBudget
	}
	return searchBudget
}

// seenLater says that nobody covers what the host puts into trees that are read, where nothing is mounted later.
func (v *view) seenLater() {
	var list []string
	for _, t := range v.trees {
		if t.mode == Read {
			list = append(list, plan.Bytes(t.root).Quote())
		}
	}
	if !v.in.Direct || len(list) == 0 {
		return
	}
	why, fix := v.notServed()
	v.losses = append(v.losses, Loss{What: "late secrets in " + plan.Few(list, 4, ", "),
		Why: why + ", so a secret that the host puts there while the session runs is seen", Fix: fix})
}
