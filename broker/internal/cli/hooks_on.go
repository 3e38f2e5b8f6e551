//go:build sbx_testhooks

package cli

import (
	"fmt"
	"slices"
	"strings"

	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/seccompbpf"
	"sbx/shared/plan"
)

// testHooks says whether this build can switch single layers off, for the controls of the selftest.
const testHooks = true

// hooks are the layers that a request has off.
type hooks struct{ off []string }

// hookOptions are the rows that a release build does not have.
func (r *request) hookOptions() []option.Option {
	set := func(v string) error {
		for _, l := range strings.Split(v, ",") {
			if !slices.Contains([]string{"seccomp", "netns", "ipcns", "env", "rlimit", "landlock", "readonly", "secrets", "guard"}, l) {
				return fmt.Errorf("no layer is called %s", quote(l))
			}
			r.hooks.off = append(r.hooks.off, l)
		}
		return nil
	}
	return []option.Option{{Name: "test-off", Arg: "LAYER,...", Group: "test", Help: "switch layers off", Value: option.Func(set)}}
}

// switchOff takes the layers away that h names.
func switchOff(h hooks, t *term, in *planner.Input) {
	off := func(layer string) bool { return slices.Contains(h.off, layer) }
	if off("seccomp") {
		in.Seccomp = plan.Seccomp{Rules: "off", Program: []plan.Insn{{Code: 6, K: uint32(seccompbpf.Allow)}}}
	}
	if off("rlimit") {
		in.Limits = nil
	}
	if off("env") {
		in.Env = t.Env
	}
	if off("secrets") {
		in.Hides = nil
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
