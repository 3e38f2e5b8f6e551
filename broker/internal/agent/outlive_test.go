//go:build linux

package agent

import (
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// TestAgentOutlives: when the broker has been killed, what it has served is ended by force. The signal is that which
// the kernel sends then.
func TestAgentOutlives(t *testing.T) {
	mounts, said := saying(t)
	mounts = append(mounts, plan.Mount{Kind: plan.Dir, Target: "/m", Mode: 0o755},
		plan.Mount{Kind: plan.Tmpfs, Target: "/m", Mode: 0o755, Size: 1 << 20, Inodes: 100},
		plan.Mount{Kind: plan.File, Target: "/m/here", Mode: 0o644})
	a, wait := guest(t, "[ -e /m/here ] && echo >/said/there; while [ -e /m/here ]; do sleep 0.05; done; echo gone",
		mounts...)
	must(t, a.Outlive([]string{"/m"}))
	said("there")
	must(t, unix.Kill(a.proc.pid, unix.SIGTERM))
	if out, code := wait(); out != "gone\n" || code != 0 {
		t.Errorf("%q, %d", out, code)
	}
}
