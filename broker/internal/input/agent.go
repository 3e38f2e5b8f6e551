package input

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
)

// agentPlaces guards what makes an agent run something, and settles its login among what is hidden: one that nobody has
// said yes to does not exist, and one that the agent is shown is not mounted, so that each program that opens it is
// looked at.
func (r *Run) agentPlaces(s request.Settings, in *planner.Input) {
	if s.Agent == nil {
		return
	}
	in.Referred = append(in.Referred, s.Agent.Guard...)
	in.OwnSecrets = s.Agent.Shown
	for _, dir := range s.Agent.State { // also one in which nothing is hidden
		if slices.ContainsFunc(s.Agent.Guard, func(r guard.Referred) bool { return host.Within(r.Path, dir) }) {
			in.Trees = append(in.Trees, dir)
		}
	}
	for _, dir := range s.Agent.Layers {
		if !slices.ContainsFunc(in.Grants, func(g planner.Grant) bool { return g.Explicit && g.Path == dir }) {
			in.Grants = append(in.Grants, planner.Grant{Path: dir, Mode: planner.Overlay, Optional: true,
				Why: s.Agent.Origin()})
		}
	}
	for _, h := range s.Agent.Hidden {
		if place := h.Place(); place != "" {
			in.Hides = append(in.Hides, planner.Hide{Path: place, Secret: true, Why: h.Reason})
		}
	}
	in.Hides = slices.DeleteFunc(in.Hides, func(h planner.Hide) bool { return s.Agent.Lifts(path.Clean(h.Path)) })
	if r.Mode != "dynamic" {
		in.Losses = append(in.Losses, s.Agent.Losses(true)...)
		return
	}
	in.Losses = append(in.Losses, s.Agent.Losses(false)...)
	for _, p := range s.Agent.Login {
		if place := p.Place(); place != "" {
			in.Hides = append(in.Hides, planner.Hide{Path: place, Ask: true, Why: s.Agent.Origin()})
		}
	}
}

// entries grants the directories in an agent's folder which is not mounted as a whole. Its files are served, so that
// each program that opens the login among them is looked at.
func (x *carrier) entries(r policy.Rule, dir string, mode planner.Mode) {
	list, _ := x.in.FS.ReadDir(dir)
	for _, e := range list {
		p := path.Join(dir, e.Name)
		if e.Type != host.Dir || x.s.Agent.Shows(p) || x.secret(r, p) || x.hiddenNow(p) {
			continue
		}
		if slices.Contains(x.s.Agent.Layers, p) {
			continue // it is granted by itself
		}
		g := planner.Grant{Path: p, Mode: mode, Optional: true, Ruled: true, Why: r.Origin.String()}
		if x.s.Agent.Guards(p) {
			g.Mode = planner.Read
		} else if len(x.in.ReferredIn(p)) > 0 {
			x.in.Trees = append(x.in.Trees, p)
		}
		x.in.Grants = append(x.in.Grants, g)
	}
}
