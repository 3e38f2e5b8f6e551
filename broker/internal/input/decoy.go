package input

import (
	"strconv"

	"sbx.example/sbx/broker/internal/decoy"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
)

// decoys puts fakes where rules say so: a person's or the organisation's, in the home. Elsewhere trees are shown
// through layers, in which nobody could watch one.
func (x *carrier) decoys(list []policy.Rule) {
	for i, r := range list {
		p, _ := r.Path().Literal()
		if !r.Decoy || r.Origin.Scope == policy.ScopeProject || !r.Expires.IsZero() && !x.now.Before(r.Expires) ||
			!x.holds(r, p) {
			continue
		}
		c := planner.Copy{Path: p, Why: r.Origin.String()}
		canon, links, _, err := host.Resolve(x.in.FS, p)
		why := ""
		switch home := x.in.Facts.Home; {
		case home == "" || p == home || !host.Within(p, home):
			why = "a decoy stands in your home only"
		case canon == "" || len(links) > 0 || canon != p || err != nil && !host.NotExist(err):
			why = "links lead elsewhere from there: name what they lead to"
		case x.named(p), x.hiddenNow(p):
			why = "an option of this run speaks of what is there"
		}
		if why != "" {
			x.in.Losses = append(x.in.Losses, planner.DecoyLoss(&c, why))
			continue
		}
		c.Text.Text, c.Mark = decoy.Make(p)
		c.Text.Name = "home-" + strconv.Itoa(i)
		x.in.Copies = append(x.in.Copies, c)
	}
}
