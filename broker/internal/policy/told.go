package policy

import (
	"slices"

	"sbx.example/sbx/broker/internal/policy/trust"
)

// Untold leaves out what a project's files ask for in vain, where a person read the same of the same files before; seen
// says that one reads it now. It is about words alone: what is given does not depend on it.
func (l Layers) Untold(s Sources, list []Notice, seen bool) []Notice {
	vain := func(n Notice) bool { return n.Kind == NoticeWidening && n.Origin.Scope == ScopeProject }
	var lines []string
	for _, n := range list {
		if vain(n) {
			lines = append(lines, n.String())
		}
	}
	if len(lines) == 0 || s.TrustDir == "" {
		return list
	}
	if trust.Told(s.TrustDir, s.ProjectDir, l.Pins, lines, s.UID) {
		return slices.DeleteFunc(slices.Clone(list), vain)
	}
	if seen {
		_ = trust.Tell(s.TrustDir, s.ProjectDir, l.Pins, lines, s.UID) // what is not remembered is said again
	}
	return list
}
