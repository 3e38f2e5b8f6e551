package live

import (
	"fmt"

	"sbx/broker/internal/host"
	"sbx/broker/internal/quoting"
	"sbx/broker/plan"
)

// homeless says that the home directory lies in a place of which the sandbox has one of its own, so that nothing in it
// is asked about.
func (b *Broker) homeless(p *plan.Plan, home string) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if target := m.Target; m.Kind == plan.Tmpfs && m.Why == "" && home != target && host.Within(home, target) &&
			target != "/" {
			b.Warn(fmt.Sprintf("the home directory %s lies in %s, of which the sandbox has one of its own: what is not "+
				"granted does not exist there, and is not asked about (--ro and --rw show it)", quoting.Quote(home), target))
			return
		}
	}
}
