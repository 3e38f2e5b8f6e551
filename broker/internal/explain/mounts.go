package explain

import (
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// layerAt is the layer of the session's own that takes what is written to p; nil if there is none.
func (x *Explainer) layerAt(p string) *plan.Mount {
	if m := x.mountAt(p); m != nil && m.Kind == plan.Overlay && m.Access == plan.ReadWrite {
		return m
	}
	return nil
}

// mountAt finds the deepest operation that shows p, nil when there is none.
func (x *Explainer) mountAt(p string) *plan.Mount {
	var best *plan.Mount
	for i := range x.Plan.Mounts {
		m := &x.Plan.Mounts[i]
		shows := m.Kind == plan.Bind || m.Kind == plan.Overlay || m.Kind == plan.Fuse || m.Kind == plan.Tmpfs &&
			m.Target != "/" || m.Kind == plan.Proc || m.Kind == plan.Absent
		if !shows && m.Target != p || m.Kind == plan.Protect || m.Kind == plan.Remount || m.Target == "/" &&
			m.Kind == plan.Tmpfs {
			continue
		}
		if host.Within(p, m.Target) && (best == nil || len(m.Target) >= len(best.Target)) {
			best = m
		}
	}
	if best == nil || best.Kind == plan.Absent {
		return nil
	}
	rel := strings.TrimPrefix(p, best.Target+"/")
	for _, h := range best.Hide {
		if host.Within(rel, string(h)) {
			return nil
		}
	}
	if best.Kind == plan.Tmpfs && best.Target != p {
		if strings.HasPrefix(best.Why, "skeleton") {
			return nil
		}
	}
	return best
}
