//go:build linux && sbx_testhooks

package input

import (
	"slices"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/seccompbpf"
)

// older takes away what later kernels have of Landlock.
func older(h request.Hooks, in *planner.Input) {
	if slices.Contains(h.Off, "scopes") {
		in.Facts.Landlock = min(in.Facts.Landlock, 4)
	}
}

// switchOff takes the layers away that h names.
func switchOff(h request.Hooks, env []string, in *planner.Input) {
	off := func(layer string) bool { return slices.Contains(h.Off, layer) }
	if off("seccomp") {
		in.Seccomp = plan.Seccomp{Rules: "off", Program: []plan.Insn{{Code: 6, K: uint32(seccompbpf.Allow)}}}
		in.Judging = nil // trees are judged by a filter, and served without one
	}
	if off("rlimit") {
		in.Limits = nil
	}
	if off("env") {
		in.Env = env
	}
	if off("secrets") {
		in.Hides, in.NoSecrets = nil, true
	}
	if off("guard") {
		in.NoGuard = true
	}
	for i := range in.Grants {
		if off("readonly") && in.Grants[i].Mode == planner.Read {
			in.Grants[i].Mode = planner.Write
			in.Ungranted = append(in.Ungranted, in.Grants[i].Path)
		}
	}
	in.ShareNet, in.ShareIPC, in.NoLandlock = off("netns"), off("ipcns"), off("landlock")
}
