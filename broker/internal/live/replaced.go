//go:build linux

package live

import (
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/plan"
)

// replaced tells of files that could be written, and in whose place the host has put others since, as editors do that
// save: the mount of a file is of that one.
func replaced(p *plan.Plan, fs planner.FS) (out []string) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if m.Kind != plan.Bind || m.Access != plan.ReadWrite || m.Ino == 0 {
			continue
		}
		st, err := fs.Lstat(string(m.Source))
		if err == nil && st.Type == host.File && (st.Dev != m.Dev || st.Ino != m.Ino) {
			out = append(out, "replaced: "+plan.Bytes(m.Source).Quote()+
				": the host put another file there meanwhile, so what was written inside since then is not in it")
		}
	}
	return out
}
