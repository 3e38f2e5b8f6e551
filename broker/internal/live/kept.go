package live

import (
	"fmt"
	"strings"

	"sbx/broker/internal/changes"
	"sbx/broker/plan"
)

// sayKept says after a run with --keep how to go on.
func (b *Broker) sayKept(r *run, sid, dir string, p *plan.Plan) {
	if !r.Keep {
		return
	}
	layers, err := changes.Layers(p, dir, false)
	if err != nil || len(layers) == 0 {
		return
	}
	b.Warn(fmt.Sprintf("kept what was written over %s: sbx diff %s, sbx apply %s, sbx discard %s",
		strings.Join(changes.Targets(layers), ", "), sid, sid, sid))
}
