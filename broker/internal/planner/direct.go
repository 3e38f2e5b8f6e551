package planner

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
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
		return &Refusal{What: "a sandbox without a program of its own cannot be had through sbx-helper", Hint: "give it a command; " + fix}
	case in.TimeOffset != 0:
		return &Refusal{What: "--time-offset cannot be had through sbx-helper", Hint: "leave it out; " + fix}
	}
	in.Facts.Fuse = false
	in.withoutLayers()
	if counts := func(l plan.Limit) bool { return l.Resource == unix.RLIMIT_NPROC }; slices.ContainsFunc(in.Limits, counts) {
		in.Limits = slices.DeleteFunc(slices.Clone(in.Limits), counts)
		in.Losses = append(slices.Clone(in.Losses), Loss{What: "limit on processes",
			Why: "without a user namespace the kernel counts all of your processes together, so only a control group can hold the sandbox's"})
	}
	return nil
}

// withoutLayers replaces writable layers. The kernel's overlay works in a directory that nobody may enter
// (its work directory has mode 0), so mounting one takes CAP_DAC_OVERRIDE, and keeps it for all that is
// done through it; the helper has given that up before it touches the first path. What tools make again
// starts empty, what they fetched is read-only, and what somebody asked for by name is refused.
func (in *Input) withoutLayers() {
	var changed []string
	in.Grants = slices.Clone(in.Grants)
	for i := range in.Grants {
		g := &in.Grants[i]
		if g.Mode != Overlay {
			continue
		}
		if g.Explicit || g.Path == in.Project {
			continue // see noLayer
		}
		g.Mode = Read
		how := " is read-only"
		if base := path.Base(g.Path); base == ".cache" || base == ".npm" || strings.Contains(base, "cache") {
			g.Mode, how = Scratch, " starts empty"
		}
		changed = append(changed, plan.Bytes(g.Path).Quote()+how)
	}
	if len(changed) > 0 {
		in.Losses = append(slices.Clone(in.Losses), Loss{What: "layers over caches", Why: "sbx-helper mounts no writable overlay, so " + strings.Join(changed, ", "), Fix: "--rw PATH shares one with the host"})
	}
}

// noLayer refuses a writable layer that somebody asked for by name.
func noLayer(g Grant) error {
	return &Refusal{What: "a writable layer over " + plan.Bytes(g.Path).Quote() + " cannot be had through sbx-helper",
		Hint: "overlayfs takes a right over all files, which the helper gives up first; use --rw, --ro or --tmpfs, or a copy"}
}

// WithoutNetwork gives the sandbox no network but its own loopback: what carries the filtered one lies in a user namespace.
func (in *Input) WithoutNetwork() {
	in.JoinNet = false
	in.Losses = append(in.Losses, Loss{What: "network", Why: "the filtered network takes user namespaces, so there is none, only a loopback of the sandbox's own"})
}
