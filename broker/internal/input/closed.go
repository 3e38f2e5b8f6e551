package input

import (
	"slices"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
)

// keepClosed puts back what a project that is not trusted leaves out of a list, or of the profile, where it keeps
// something wider closed: an option or a rule shows what is around it, and the entry is a layer, say, so that the host
// hears nothing of what is written there. It returns what is granted without that file; in, where there is none.
func (r *Run) keepClosed(s request.Settings, in *planner.Input) (base *planner.Input, err error) {
	held, narrowed := s.Without()
	if !narrowed {
		return in, nil
	}
	s.Effective = held
	without, quiet := *in, *r
	without.Grants, without.Hides, without.Losses, quiet.Warn = nil, nil, nil, func(string) {}
	if err := quiet.places(s, &without); err != nil {
		return nil, err
	}
	rules := s.Layers.Policy.InForce()
	for _, g := range without.Grants {
		canon, _, _, err := host.Resolve(in.FS, g.Path)
		if g.Mode == planner.Write || err != nil || slices.ContainsFunc(in.Grants, func(o planner.Grant) bool {
			return o.Path == g.Path && o.Mode == g.Mode
		}) {
			continue
		}
		around := slices.ContainsFunc(rules, func(r policy.Rule) bool {
			return r.Decision == policy.Allow && r.Kind == policy.KindPath && host.Within(canon, r.Path().Fixed())
		})
		there := planner.None
		for _, o := range in.Grants {
			if top, _, _, err := host.Resolve(in.FS, o.Path); err == nil && host.Within(canon, top) {
				around = around || width(o.Mode) > width(g.Mode)
				if top == canon && width(o.Mode) > width(there) {
					there = o.Mode
				}
			}
		}
		if around && (there == planner.None || width(there) > width(g.Mode)) {
			in.Grants = append(in.Grants, g)
		}
	}
	return &without, nil
}

// width orders modes by what they give of the host.
func width(m planner.Mode) int {
	return slices.Index([]planner.Mode{planner.None, planner.Scratch, planner.Read, planner.Overlay, planner.Write}, m)
}
