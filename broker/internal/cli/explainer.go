package cli

import (
	"time"

	"sbx.example/sbx/broker/internal/explain"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
)

// explainer computes the plan of a run with the options of r, without making anything.
func (t *term) explainer(r *request.Request, facts host.Facts, now time.Time) (*explain.Explainer, error) {
	x, err := t.explainerIn(*r, facts, now)
	if err == nil {
		return x, nil
	}
	// From a place where nothing can be run, such as the home directory, the layers still can be named.
	elsewhere := *r
	elsewhere.Workdir = "/usr"
	y, other := t.explainerIn(elsewhere, facts, now)
	if other != nil {
		return nil, err
	}
	y.Note = err.Error()
	return y, nil
}

func (t *term) explainerIn(q request.Request, facts host.Facts, now time.Time) (*explain.Explainer, error) {
	s, err := q.Settings(t.Env, facts, q.ProjectRoot(facts))
	if err != nil {
		return nil, err
	}
	r := input.Run{Request: &q, Argv: []string{"true"}, Mode: s.Mode(facts), Env: t.Env, Std: t.Std, Warn: t.Warn}
	backend := s.Backend(facts)
	switch backend {
	case "bwrap":
		if r.Helper, err = launch.FindBubblewrap(q.NoSuid); err != nil {
			return nil, err
		}
	case "helper":
		r.Helper = &launch.Helper{}
	case "landlock":
		r.InPlace, r.Asks, r.Mode = true, r.Mode == "dynamic", "static"
	}
	in, _, err := r.Make(s, facts)
	if err != nil {
		return nil, err
	}
	input.Assign(in, "why", "/nonexistent")
	x := &explain.Explainer{Settings: s, Input: in, Sources: request.Sources(t.Env, facts, s.Vars.Project),
		Static: r.Mode != "dynamic"}
	if backend != "auto" {
		x.Backend = backend
	}
	if x.Plan, x.Losses, err = planner.Build(*in); err != nil {
		return nil, err
	}
	return x, x.Refresh(now)
}
