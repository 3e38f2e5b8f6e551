package input

import (
	"slices"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
)

// dropLinked leaves out what settings grant by way of a link in a place that programs inside can write: one of an
// earlier run could have put it there, to have its target granted in this one. Who names a path for this run has
// looked.
func dropLinked(in *planner.Input) {
	var places []string
	for _, g := range in.Grants {
		if g.Mode == planner.Write {
			if canon, links, _, err := host.Resolve(in.FS, g.Path); err == nil && len(links) == 0 {
				places = append(places, canon)
			}
		}
	}
	byProgram := func(l host.LinkAt) bool {
		return slices.ContainsFunc(places, func(dir string) bool { return host.Within(l.Path, dir) })
	}
	in.Grants = slices.DeleteFunc(in.Grants, func(g planner.Grant) bool {
		_, links, _, _ := host.Resolve(in.FS, g.Path)
		drop := !g.Explicit && slices.ContainsFunc(links, byProgram)
		if drop {
			in.Losses = append(in.Losses, planner.Loss{What: quoting.Quote(g.Path) + " (" + g.Why + ")",
				Why: ledByPrograms, Fix: "name what it leads to"})
		}
		return drop
	})
}

// ledByPrograms is why something is not granted.
const ledByPrograms = "it leads through a link that programs in the sandbox can change"
