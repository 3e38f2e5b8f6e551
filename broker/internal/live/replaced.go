//go:build linux

package live

import (
	"os"
	"time"

	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// fileClock is how far the clock of files may be behind: a tick where there are a hundred in a second.
const fileClock = 10 * time.Millisecond

// replaced tells of files that could be written, and in whose place the host has put others since, as editors do that
// save, where nobody could mount those.
func replaced(p *plan.Plan, is func(*plan.Mount) bool) (out []string) {
	for i := range p.Mounts {
		if m := &p.Mounts[i]; is(m) {
			out = append(out, "replaced: "+plan.Bytes(m.Source).Quote()+
				": the host put another file there meanwhile, so what was written inside since then is not in it")
		}
	}
	return out
}

// unsaved tells of files that a static run was to write and did not, where its program failed: many save by a new file
// beside the old one, of which the kernel alone knows that it could not be made.
func (x *attempt) unsaved(status int) (out []string) {
	if status == 0 || x.approvals != nil {
		return nil
	}
	alone := request.Alone(x.in, x.plan)
	for i := range x.plan.Mounts {
		m := &x.plan.Mounts[i]
		if m.Why != "--rw" || !alone(m.Source) {
			continue
		}
		if st, err := os.Lstat(m.Source); err == nil && st.ModTime().Before(x.began) {
			out = append(out, plan.Bytes(m.Source).Quote()+" was not written: who saves it by a new file beside it needs "+
				request.ToReplace(x.in, m.Source))
		}
	}
	return out
}
