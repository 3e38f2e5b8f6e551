package cli

import (
	"context"

	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
	"sbx/shared/plan"
)

func bg() context.Context { return context.Background() }

// smallestPlan is a strict sandbox that runs true, without any session folder; with gate, its root is served,
// and with direct it is for a host without user namespaces.
func (t *term) smallestPlan(gate, direct bool) (*plan.Plan, error) {
	r := &request.Request{Profile: "strict", Argv: []string{"true"}, Workdir: "/usr"}
	facts := host.Read(t.Env)
	s, err := t.settings(r, facts, "")
	if err != nil {
		return nil, err
	}
	in, err := t.input(newRun(*r), s, facts)
	if err != nil {
		return nil, err
	}
	in.Gate, in.Direct = gate, direct
	in.Session, in.Hostname, in.SessionDir = "doctor", "sbx-doctor", "/nonexistent"
	p, _, err := planner.Build(*in)
	return p, err
}
