package cli

import (
	"sbx.example/sbx/broker/internal/explain"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/request"
)

// planned gives an explainer the plan of a run.
func (t *term) planned(x *explain.Explainer, q *request.Request, facts host.Facts) error {
	return t.placedFor(x, q, facts)
}
