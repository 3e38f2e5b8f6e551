//go:build linux

package changes

import (
	"os"
	"path/filepath"
	"strings"

	"sbx.example/sbx/broker/plan"
)

// Elsewhere says of an absolute path whether it is a directory of the host that neither a session with this plan
// nor what it leaves behind can change: nothing on the way is a link, and no writable mount shows it, something
// above or something in it.
func Elsewhere(p *plan.Plan) func(string) bool {
	var writable []string
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if m.Kind == plan.Tmpfs || m.Access != plan.ReadWrite && m.Upper == "" {
			continue
		}
		writable = append(writable, m.Target)
		if m.Source != "" {
			writable = append(writable, m.Source)
		}
	}
	return func(name string) bool {
		for _, w := range writable {
			if name == w || strings.HasPrefix(name, w+"/") || strings.HasPrefix(w, name+"/") {
				return false
			}
		}
		real, err := filepath.EvalSymlinks(name)
		if err != nil || real != name {
			return false
		}
		st, err := os.Stat(name)
		return err == nil && st.IsDir()
	}
}
