package planner

import (
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// direct fits the input to a host without user namespaces, where sbx-helper carries the plan out. What
// it does not do for anybody is refused; what cannot hold there is a loss.
func (in *Input) direct() error {
	if !in.Direct {
		return nil
	}
	const fix = "it takes user namespaces, which this host does not give; see sbx doctor"
	switch {
	case in.MapRoot:
		return &Refusal{What: "uid 0 inside cannot be had through sbx-helper", Hint: fix}
	case in.AsPID1:
		return &Refusal{What: "--as-pid-1 cannot be had through sbx-helper", Hint: "leave it out; " + fix}
	case in.Idle:
		return &Refusal{What: "a sandbox without a program of its own cannot be had through sbx-helper",
			Hint: "give it a command; " + fix}
	case in.TimeOffset != 0:
		return &Refusal{What: "--time-offset cannot be had through sbx-helper", Hint: "leave it out; " + fix}
	}
	for i, kind := range in.Stdio { // it opens nothing: files come through a pipe
		if kind == plan.Reopen || kind == plan.Null {
			in.Stdio[i] = plan.Inherit
		}
	}
	in.Facts.Fuse = false
	in.withoutLayers("sbx-helper mounts no overlay")
	if counts := func(l plan.Limit) bool { return l.Resource == unix.RLIMIT_NPROC }; slices.ContainsFunc(in.Limits,
		counts) {
		in.Limits = slices.DeleteFunc(slices.Clone(in.Limits), counts)
		if slices.ContainsFunc(in.Controls, func(c plan.Control) bool { return c.File == "pids.max" }) {
			return nil
		}
		in.Losses = append(slices.Clone(in.Losses), Loss{What: "limit on processes",
			Why: "without a user namespace the kernel counts all of your processes together, so only a control group can " +
				"hold the sandbox's",
			Fix: "--pids asks for one, where it can be had (sbx doctor)"})
	}
	return nil
}

// WithoutNetwork gives the sandbox no network but its own loopback: what carries the filtered one lies in a user
// namespace.
func (in *Input) WithoutNetwork() {
	in.JoinNet = false
	in.Losses = append(in.Losses, Loss{What: "network",
		Why: "the filtered network takes user namespaces, so there is none, only a loopback of the sandbox's own"})
}
