//go:build linux

package plan_test

import (
	"testing"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/plans"
)

// TestInPlaceIsAPlan: a plan without namespaces is one as it is, and none with what takes them or without what holds
// it.
func TestInPlaceIsAPlan(t *testing.T) {
	if err := plans.InPlace().Validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*plan.Plan){
		"a namespace":   func(p *plan.Plan) { p.Namespaces.User = true },
		"a host name":   func(p *plan.Plan) { p.Hostname = "x" },
		"process 1":     func(p *plan.Plan) { p.Process.AsPID1 = true },
		"no rules":      func(p *plan.Plan) { p.Landlock = nil },
		"no reports":    func(p *plan.Plan) { p.Seccomp.Notify, p.Fds = false, p.Fds[:1] },
		"other ids":     func(p *plan.Plan) { p.Identity.InsideUID++ },
		"a tmpfs":       func(p *plan.Plan) { p.Mounts[0] = plan.Mount{Kind: plan.Tmpfs, Target: "/tmp"} },
		"another place": func(p *plan.Plan) { p.Mounts[0].Source = "/bin" },
		"a file opened": func(p *plan.Plan) { p.Stdio[0] = plan.Reopen },
		"no place":      func(p *plan.Plan) { p.InPlace.Tmp = "tmp" },
	} {
		p := plans.InPlace()
		if change(p); p.Validate() == nil {
			t.Errorf("with %s it is valid", what)
		}
	}
}
