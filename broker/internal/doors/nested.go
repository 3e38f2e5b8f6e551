//go:build linux

package doors

import (
	"sbx.example/sbx/broker/internal/planner"
)

// Nested lets programs make sandboxes of their own inside. That an agent's profile asks for it is no reason not to run
// the agent.
func (d *Doors) Nested() error {
	s, in := d.Settings, d.In
	if !s.Features.Nested {
		return nil
	}
	why, hint := d.noNamespaces("the mounts of a sandbox inside", "a sandbox inside")
	switch {
	case why == "":
		in.Nested = true
	case s.Agent.Nests(s):
		in.Losses = append(in.Losses, planner.Loss{What: "sandboxes inside (" + s.Origin("features.nested") + ")",
			Why: why, Fix: hint})
	default:
		return &planner.Refusal{What: "--nested: " + why, Hint: hint}
	}
	return nil
}

// noNamespaces says why programs cannot be given user namespaces with what else was asked for, or "", and what to do
// about it.
func (d *Doors) noNamespaces(files, mounts string) (why, hint string) {
	switch in := d.In; {
	case in.Facts.UID == 0:
		return "root of a namespace inside would be root of the host", "run sbx as an ordinary user"
	case d.Helper:
		return "this host gives no user namespaces", "sbx doctor says how they can be had"
	case !in.Facts.Fuse:
		return "/dev/fuse cannot be opened, so the project would not be guarded against root of a namespace inside",
			"as root: chmod 0666 /dev/fuse"
	case d.Request.OnlyNamed(d.Settings):
		return "what is in " + files + " can be executed, which --only forbids", "leave one of the two out"
	case d.Notify:
		return "the gate that looks at system calls does not know the mounts of " + mounts,
			"leave out --gate notify, or use --static"
	}
	return "", ""
}
