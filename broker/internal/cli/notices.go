package cli

import (
	"fmt"

	"sbx/broker/internal/host"
	"sbx/broker/internal/policy"
	"sbx/shared/plan"
)

// maxNotices is how many lines a project's files can make every run begin with.
const maxNotices = 12

// notices says what of the files does not count. A project can fill its files with such things.
func (t *term) notices(list []policy.Notice) {
	for i, n := range list {
		if i == maxNotices && len(list) > maxNotices+1 {
			t.warn(fmt.Sprintf("%d more settings and rules are ignored or worth a look; sbx policy check lists them", len(list)-i))
			return
		}
		t.warn(n.String())
	}
}

// homeless says that the home directory lies in a place of which the sandbox has one of its own, so that nothing in it is asked about.
func (t *term) homeless(p *plan.Plan, home string) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if target := string(m.Target); m.Kind == plan.Tmpfs && m.Why == "" && home != target && host.Within(home, target) && target != "/" {
			t.warn(fmt.Sprintf("the home directory %s lies in %s, of which the sandbox has one of its own: what is not granted does not exist there, and is not asked about (--ro and --rw show it)", quote(home), target))
			return
		}
	}
}
