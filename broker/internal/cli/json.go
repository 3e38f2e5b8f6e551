package cli

import (
	"bytes"
	"encoding/json"

	"sbx/broker/internal/planner"
	"sbx/shared/plan"
)

// dryRunJSON is the answer to --dry-run --json: {"plan": …, "losses": […]}.
func dryRunJSON(p *plan.Plan, losses []planner.Loss) string {
	if losses == nil {
		losses = []planner.Loss{}
	}
	return encode(struct {
		Plan   *plan.Plan     `json:"plan"`
		Losses []planner.Loss `json:"losses"`
	}{p, losses})
}

func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
	return b.String()
}
