package cli

import "sbx/broker/internal/planner"

// unbuilt says which settings somebody made that this version does not carry out. Nothing becomes weaker
// by them: what is not granted stays refused; but it must not be silent.
func unbuilt(s settings) []planner.Loss {
	var out []planner.Loss
	add := func(what, why, fix string) { out = append(out, planner.Loss{What: what, Why: why, Fix: fix}) }
	f := s.Features
	for key, on := range map[string]bool{"containers": f.Containers} {
		if on {
			add("features."+key, "this version does not have it ("+s.origin("features."+key)+")", "")
		}
	}
	return out
}
