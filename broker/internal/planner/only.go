package planner

import (
	"slices"

	"sbx.example/sbx/broker/plan"
)

// Only is what may be executed when nothing else may. Paths are canonical.
type Only struct {
	Programs []string // files
	Trees    []string // directories of programs
	Mapped   []string // libraries, and directories of them
	Masked   []string // programs inside the mapped directories
}

const llExecute = 1 << 0

// restrict takes the right to execute from every mount and gives it back to what is named: a bind of its own for each,
// since the kernel keeps that right by mount. It holds for execve(2) and for mapping, so that no loader, copy or
// second name gets round it.
func (o *Only) restrict(mounts []plan.Mount) []plan.Mount {
	for i := range mounts {
		switch mounts[i].Kind {
		case plan.Tmpfs, plan.Bind, plan.Overlay, plan.Fuse:
			if !mounts[i].Device {
				mounts[i].NoExec = true
			}
		}
	}
	n := len(mounts)
	if n > 0 && mounts[n-1].Kind == plan.Remount && mounts[n-1].Target == "/" {
		n-- // the root is made read-only last
	}
	var extra []plan.Mount
	give := func(list []string, noexec bool, why string) {
		for _, p := range list {
			if visible(mounts[:n], p) {
				extra = append(extra, plan.Mount{Kind: plan.Bind, Target: p, Source: p, Access: plan.ReadOnly, NoExec: noexec,
					Why: why})
			}
		}
	}
	give(o.Mapped, false, "--only: libraries")
	give(o.Masked, true, "--only: a program among the libraries")
	give(o.Trees, false, "--only: programs of a named one")
	give(o.Programs, false, "--only")
	return slices.Insert(mounts, n, extra...)
}

// landlock adds the right to execute to the second line: the mounts let libraries be mapped, this lets only programs be
// executed.
func (o *Only) landlock(l *plan.Landlock, mounts []plan.Mount) {
	l.HandledFS |= llExecute
	for i := range l.Rules {
		l.Rules[i].Access &^= llExecute
	}
	for _, p := range slices.Concat(o.Programs, o.Trees) {
		if visible(mounts, p) {
			l.Rules = append(l.Rules, plan.LandlockRule{Path: plan.Bytes(p), Access: llExecute})
		}
	}
}
