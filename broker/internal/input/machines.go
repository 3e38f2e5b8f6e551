//go:build linux

package input

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
)

// machines grants what virtual machines want: QEMU itself is an ordinary program, whose user-mode network reaches what
// the session's does. What it needs are the images, and for speed the one device that is never there by itself.
func (r *Run) machines(s request.Settings, in *planner.Input) error {
	if s.Features.VM {
		data := request.Absolute(r.Env, "XDG_DATA_HOME", in.Facts.Home+"/.local/share")
		for _, d := range [...]string{data + "/libvirt/images", data + "/gnome-boxes/images", data + "/images",
			"/var/lib/libvirt/images"} {
			in.Grants = append(in.Grants, planner.Grant{Path: d, Mode: planner.Read, Optional: true, NoExec: true, Why: "--vm"})
		}
	}
	if !s.Features.KVM {
		return nil
	}
	if st, err := in.FS.Lstat("/dev/kvm"); err != nil || st.Type != host.Other {
		return &planner.Refusal{What: "--allow-kvm: this host has no /dev/kvm",
			Hint: "leave the option out: QEMU emulates without it (-accel tcg)"}
	}
	if !in.FS.Access("/dev/kvm", unix.R_OK|unix.W_OK) {
		return &planner.Refusal{What: "--allow-kvm: you may not open /dev/kvm",
			Hint: "ask for membership of the group kvm, or leave the option out"}
	}
	in.KVM = true
	if !r.Quiet {
		r.Warn("/dev/kvm is shown (" + s.Origin("features.kvm") +
			"): a program that makes virtual machines reaches far more of the kernel than others")
	}
	return nil
}
