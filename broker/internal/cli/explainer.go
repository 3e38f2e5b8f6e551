package cli

import (
	"time"

	"sbx.example/sbx/broker/internal/explain"
	"sbx.example/sbx/broker/internal/host"
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
	x := &explain.Explainer{Settings: s, Sources: request.Sources(t.Env, facts, s.Vars.Project)}
	if err := t.planned(x, &q, facts); err != nil {
		return nil, err
	}
	return x, x.Refresh(now)
}

// placedFor has an explainer answer for a run that macOS's sandbox holds.
func (t *term) placedFor(x *explain.Explainer, q *request.Request, facts host.Facts) error {
	p, err := t.place(q, []string{"true"}, x.Settings, facts, "why", "/nonexistent")
	if err == nil {
		x.Input, x.Plan, x.Static = p.in, p.plan, true
	}
	return err
}
