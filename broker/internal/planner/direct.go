package planner

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/bwrapline"
	"sbx.example/sbx/broker/plan"
)

// direct fits the input to a sandbox that another program builds: sbx-helper, on a host without user namespaces, or
// bubblewrap. What it does not do for anybody is refused; what cannot hold there is a loss.
func (in *Input) direct() error {
	if !in.Direct {
		return nil
	}
	by, fix := in.builder(), "it takes user namespaces, which this host does not give; see sbx doctor"
	if in.Bubblewrap != nil {
		fix = "it takes --backend native"
	}
	switch {
	case in.MapRoot:
		return &Refusal{What: "uid 0 inside cannot be had through " + by, Hint: fix}
	case in.AsPID1:
		return &Refusal{What: "--as-pid-1 cannot be had through " + by, Hint: "leave it out; " + fix}
	case in.Idle:
		return &Refusal{What: "a sandbox without a program of its own cannot be had through " + by,
			Hint: "give it a command; " + fix}
	case in.Only != nil && in.Bubblewrap != nil:
		return &Refusal{What: "--only and sandbox.untrusted cannot be had through bwrap",
			Hint: "it has no option for noexec, without which what " +
				"can be read can be run; use --backend native"}
	case in.TimeOffset != 0:
		return &Refusal{What: "--time-offset cannot be had through " + by, Hint: "leave it out; " + fix}
	}
	for i, kind := range in.Stdio { // it opens nothing: files come through a pipe
		if kind == plan.Reopen || kind == plan.Null {
			in.Stdio[i] = plan.Inherit
		}
	}
	if in.Bubblewrap != nil && in.Facts.OwnMounts() != nil {
		in.Losses = append(slices.Clone(in.Losses), Loss{What: "kernel " + in.Facts.Kernel,
			Why: "it has no mount_setattr, so bwrap builds the sandbox and no other backend can be had", Fix: "Linux 5.12"})
	}
	in.Facts.Fuse = false
	in.withoutLayers(by + " mounts no overlay")
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

// Bubblewrap is what has to be known of bubblewrap where it builds the sandbox.
type Bubblewrap struct{ Setuid bool }

// builder is the program that builds the sandbox, where that is not sbx.
func (in *Input) builder() string {
	if in.Bubblewrap != nil {
		return "bwrap"
	}
	return "sbx-helper"
}

// bwrapWords writes the plan in bubblewrap's words, where that builds the sandbox.
func (in *Input) bwrapWords(p *plan.Plan) ([]Loss, error) {
	if in.Bubblewrap == nil {
		return nil, nil
	}
	words, lost, err := bwrapline.Options(p, bwrapline.Host{Setuid: in.Bubblewrap.Setuid,
		Exists: func(p string) bool { _, err := in.FS.Lstat(p); return err == nil }})
	if err != nil {
		return nil, fmt.Errorf("BUG(sbx): planned what bubblewrap has no words for: %w", err)
	}
	if len(words) > plan.MaxBwrap {
		return nil, &Refusal{What: fmt.Sprintf("this takes %d arguments of bwrap, which takes %d", len(words),
			plan.MaxBwrap), Hint: "grant and hide fewer places, or use --backend native"}
	}
	p.Bwrap = words
	losses := make([]Loss, len(lost))
	for i, l := range lost {
		losses[i] = Loss{What: l.What, Why: l.Why, Fix: l.Fix}
	}
	return losses, nil
}

// WithoutNetwork gives the sandbox no network but its own loopback: what carries the filtered one lies in a user
// namespace.
func (in *Input) WithoutNetwork() {
	why := "the filtered network takes user namespaces, so there is none, only a loopback of the sandbox's own"
	if in.Bubblewrap != nil {
		why = "bwrap joins no network that was made before, so there is none, only a loopback of the sandbox's own"
	}
	in.JoinNet = false
	in.Losses = append(in.Losses, Loss{What: "network", Why: why})
}
