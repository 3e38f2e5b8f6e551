package cli

import (
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/plan"
)

// dryRunJSON is the answer to --dry-run --json: {"plan": …, "losses": […]}.
func dryRunJSON(p *plan.Plan, losses []planner.Loss) string {
	if losses == nil {
		losses = []planner.Loss{}
	}
	return command.Encode(struct {
		Plan   *plan.Plan     `json:"plan"`
		Losses []planner.Loss `json:"losses"`
	}{p, losses})
}
