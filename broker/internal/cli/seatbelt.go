package cli

import (
	"cmp"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/seatbelt"
	"sbx.example/sbx/broker/plan"
)

// placed is a run as macOS's sandbox holds it.
type placed struct {
	in     *planner.Input
	plan   *plan.Plan
	text   string // the profile
	losses []planner.Loss
}

// place plans a run of a session that has its folder at dir.
func (t *term) place(q *request.Request, argv []string, s request.Settings, facts host.Facts, sid,
	dir string) (*placed, error) {
	r := input.Run{Request: q, Argv: argv, Mode: "static", Env: t.Env, Std: t.Std, Warn: t.Warn,
		Asks: s.Sandbox.Mode == "dynamic"}
	in, err := r.Seatbelt(s, facts)
	if err != nil {
		return nil, err
	}
	input.Assign(in, sid, dir)
	p, places, losses, err := planner.BuildPlaced(*in)
	if err != nil {
		return nil, err
	}
	v := seatbelt.View{Places: places, Network: in.ShareNet}
	for i := range p.Mounts {
		if m := &p.Mounts[i]; m.Kind == plan.Judged {
			v.Guards = append(v.Guards, seatbelt.Guard{Top: m.Target, Rules: request.GuardRules(in, m)})
		}
	}
	text, err := seatbelt.Text(v)
	return &placed{in, p, text, losses}, err
}

// dryPlace prints what a run would be held by.
func (t *term) dryPlace(q request.Request, def string) int {
	facts := host.Read(t.Env)
	s, err := q.Settings(t.Env, facts, q.ProjectRoot(facts))
	if err != nil {
		return t.fail(err)
	}
	if len(q.Argv) == 0 {
		q.Argv = []string{cmp.Or(host.Lookup(t.Env, "SHELL"), def)}
	}
	x, err := t.place(&q, q.Argv, s, facts, "dry-run", "/nonexistent")
	if err != nil {
		return t.fail(err)
	}
	if q.JSON {
		t.print(placedJSON(x))
		return 0
	}
	t.print(x.text)
	for _, l := range x.losses {
		t.Warn(l.String())
	}
	return 0
}
