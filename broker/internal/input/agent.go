package input

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
)

// agentPlaces guards what makes an agent run something, and settles its login among what is hidden: one that nobody has
// said yes to does not exist, and one that the agent is shown is not mounted, so that each program that opens it is
// looked at.
func (r *Run) agentPlaces(s request.Settings, in *planner.Input) {
	if s.Agent == nil {
		return
	}
	for _, p := range s.Agent.Guard {
		in.Referred = append(in.Referred, planner.Referred{Path: p,
			Why: s.Agent.Name + " acts upon it, also outside of the sandbox"})
	}
	for _, h := range s.Agent.Hidden {
		if place := h.Place(); place != "" {
			in.Hides = append(in.Hides, planner.Hide{Path: place, Secret: true, Why: h.Reason})
		}
	}
	in.Hides = slices.DeleteFunc(in.Hides, func(h planner.Hide) bool { return s.Agent.Shows(path.Clean(h.Path)) })
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
