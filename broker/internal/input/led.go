package input

import (
	"path"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
)

// canonical is where a grant leads.
func (x *carrier) canonical(g planner.Grant) string { return host.LeadsTo(x.in.FS, g.Path) }

// names are the path of a grant and where that leads, if that is another: what holds about either holds about both.
func (x *carrier) names(g planner.Grant) []string {
	p := path.Clean(g.Path)
	if at := x.canonical(g); at != p {
		return []string{p, at}
	}
	return []string{p}
}

// undenied leaves out the places that lead to what a rule denies or asks about, whatever another says of the link.
func (x *carrier) undenied(r policy.Rule, paths []string) (out []string) {
	for _, p := range paths {
		at := host.LeadsTo(x.in.FS, p)
		hit, ok := x.s.Layers.Policy.Match(policy.Query{Kind: policy.KindPath, Path: at, Access: r.Access, Now: x.now})
		switch {
		case at == p || !ok || hit.Decision != policy.Deny && hit.Decision != policy.Ask:
			out = append(out, p)
		case x.static || hit.Decision == policy.Deny:
			x.loss(r, "it leads to "+quoting.Quote(at)+", and "+quoting.ASCII(hit.String())+" ("+hit.Origin.String()+
				") is about that")
		}
	}
	return out
}
