package planner

import "sbx.example/sbx/broker/plan"

// What a sandbox has in which programs make user namespaces: sandboxes of their own, or containers. Their mount
// namespaces belong to those, so the kernel locks every mount that the sandbox has made.

// spareProc holds a proc of which nothing is covered: the kernel lets a nested namespace mount one of its own only
// where such a one stands in its mount namespace. It need not be reachable, and is not.
const spareProc = "/run/sbx/spare"

// nests says whether programs make user namespaces inside.
func (in *Input) nests() bool { return in.Nested || in.Containers != nil }

// spare puts it into the tree.
func (v *view) spare() {
	v.root.at(spareProc).special = []plan.Mount{{Kind: plan.Dir, Target: spareProc + "/proc", Mode: 0o555},
		{Kind: plan.Proc, Target: spareProc + "/proc"},
		{Kind: plan.Tmpfs, Target: spareProc, Size: 4096, Inodes: 2, Mode: 0o555, Access: plan.ReadOnly,
			Why: "covers a proc for nested namespaces"}}
}

// nestedLandlock keeps what can be kept: a program that is held by file rules may not mount anything, wherever it
// stands.
func (in *Input) nestedLandlock(p *plan.Plan, abi int) []Loss {
	if abi >= 6 {
		p.Landlock = &plan.Landlock{ABI: abi, Scoped: plan.ScopeAbstract | plan.ScopeSignal}
	}
	const forbids, line = "its file rules forbid all mounting, which ", ", so the mounts are the only line against writing"
	l := Loss{What: "landlock", Why: forbids + "containers need" + line, Fix: "run without --containers what needs none",
		Price: true}
	if in.Containers == nil {
		l.Why = forbids + "sandboxes inside need" + line + "; and sbx serves the project itself, which is slower"
		l.Fix = "features.nested = false for what makes none"
	}
	return []Loss{l}
}
