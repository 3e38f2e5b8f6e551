package input

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
)

// ledByPrograms is why something is not granted.
const ledByPrograms = "it leads through a link that programs in the sandbox can change"

// checkLinks leaves out what settings grant by way of a link that a program of an earlier run could have made, to have
// its target granted in this one. Who names such a path for this run has to name the target, if more is granted so.
func checkLinks(in *planner.Input) error {
	kept := in.Grants[:0:0]
	for _, g := range in.Grants {
		canon, links, _, _ := host.Resolve(in.FS, g.Path)
		switch {
		case !madeByPrograms(in, links):
			kept = append(kept, g)
		case !g.Explicit:
			in.Losses = append(in.Losses, planner.Loss{What: quoting.Quote(g.Path) + " (" + g.Why + ")",
				Why: ledByPrograms, Fix: "name what it leads to"})
		case canon != "" && !isSecret(in, canon) && !slices.ContainsFunc(linkable(in), func(dir string) bool {
			return host.Within(canon, dir)
		}):
			return &planner.Refusal{What: g.Why + " " + quoting.Quote(g.Path) + ": " + ledByPrograms,
				Hint: "it is " + quoting.Quote(canon) + " now: if that is what you mean, name it"}
		default:
			kept = append(kept, g)
		}
	}
	in.Grants = kept
	return nil
}

// isSecret says whether a path is one, whose grant the planner refuses.
func isSecret(in *planner.Input, p string) bool {
	return slices.ContainsFunc(in.Hides, func(h planner.Hide) bool {
		return h.Secret && host.Within(p, path.Clean(h.Path))
	})
}

// madeByPrograms says whether one of the links lies where programs can make some.
func madeByPrograms(in *planner.Input, links []host.LinkAt) bool {
	return len(links) > 0 && slices.ContainsFunc(linkable(in), func(dir string) bool {
		return slices.ContainsFunc(links, func(l host.LinkAt) bool { return host.Within(l.Path, dir) })
	})
}

// linkable are the places in which programs can make links in this run, beside it, or could in an earlier one.
func linkable(in *planner.Input) []string {
	out := slices.Clip(in.LinkableBeside)
	if in.Project != "" {
		out = append(out, in.Project)
	}
	for _, g := range in.Grants {
		if g.Mode == planner.Write { // what is reached by a link is not known yet to be granted
			if canon, links, _, err := host.Resolve(in.FS, g.Path); err == nil && len(links) == 0 {
				out = append(out, canon)
			}
		}
	}
	return out
}
