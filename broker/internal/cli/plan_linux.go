package cli

import (
	"sbx.example/sbx/broker/internal/explain"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
)

// planned gives an explainer the plan of a run.
func (t *term) planned(x *explain.Explainer, q *request.Request, facts host.Facts) error {
	if q.Seatbelt {
		return t.placedFor(x, q, facts)
	}
	r := input.Run{Request: q, Argv: []string{"true"}, Mode: x.Settings.Mode(facts), Env: t.Env, Std: t.Std, Warn: t.Warn}
	backend := x.Settings.Backend(facts)
	switch backend {
	case "bwrap":
		by, err := launch.FindBubblewrap(q.NoSuid)
		if err != nil {
			return err
		}
		r.Helper, r.Bubblewrap = input.BuiltBy(by)
	case "helper":
		r.Helper = true
	case "landlock":
		r.InPlace, r.Asks, r.Mode = true, r.Mode == "dynamic", "static"
	}
	in, _, err := r.Make(x.Settings, facts)
	if err != nil {
		return err
	}
	in.ProjectAt = "" // all is explained by the host's paths
	input.Assign(in, "why", "/nonexistent")
	x.Input, x.Static = in, r.Mode != "dynamic"
	if backend != "auto" {
		x.Backend = backend
	}
	x.Plan, x.Losses, err = planner.Build(*in)
	return err
}
