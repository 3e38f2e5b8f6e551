//go:build linux

package live

import "sbx.example/sbx/broker/plan"

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
