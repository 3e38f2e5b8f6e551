package cli

import (
	"fmt"
	"strings"

	"sbx/broker/internal/changes"
	"sbx/broker/internal/command"
	"sbx/shared/plan"
)

// sayKept says after a run with --keep how to go on.
func (t *term) sayKept(r *run, sid, dir string, p *plan.Plan) {
	if !r.Keep {
		return
	}
	layers, err := changes.Layers(p, dir, false)
	if err != nil || len(layers) == 0 {
		return
	}
	t.warn(fmt.Sprintf("kept what was written over %s: sbx diff %s, sbx apply %s, sbx discard %s", strings.Join(command.Targets(layers), ", "), sid, sid, sid))
}
