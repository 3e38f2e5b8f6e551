package planner

import "sbx/shared/plan"

// judged mounts a directory below a guarded one as it is. Where it may be written, the kernel shows it read-only and the broker
// carries out what changes it, by what it decides about each name: guarded names hold there as in what is served.
func (v *view) judged(p string, mode Mode, g Grant) {
	v.bind(p, mode, g)
	if mode == Write && v.in.Judging != nil {
		v.op(plan.Mount{Kind: plan.Judged, Target: plan.Bytes(p), Access: plan.ReadOnly, Why: "guarded"})
	}
}
