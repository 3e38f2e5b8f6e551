package session

import (
	"fmt"
	"os"
	"path/filepath"

	"sbx.example/sbx/broker/plan"
)

// Plan reads the plan in a session's folder.
func Plan(dir string) (*plan.Plan, error) {
	b, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if err == nil {
		var p *plan.Plan
		if p, err = plan.Decode(b); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("reading the session's plan: %w", err)
}
