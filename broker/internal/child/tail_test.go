//go:build linux

package child

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// TestFaultOfTail: a fault of what the helper does not look into has its own words, and one of what it compiles has the
// helper's.
func TestFaultOfTail(t *testing.T) {
	p := plans.Smallest("/usr/bin/true")
	p.Namespaces.User = false
	p.Limits = []plan.Limit{{Resource: unix.RLIMIT_NOFILE, Name: "nofile", Soft: 1, Hard: 1}}
	tail, err := NewTail(p)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(tail.FD)
	c := &Child{plan: p, rest: tail.rest, start: tail.start}
	if err := c.nameSteps(stage.Stdio{-1, 1, 2}); err != nil {
		t.Fatal(err)
	}
	limit := slices.IndexFunc(tail.rest.Ops, func(o tape.Op) bool { return o.Nr == unix.SYS_PRLIMIT64 })
	for _, x := range []struct {
		index        int64
		step, object string
	}{{stage.OfTail + int64(limit), "setting limit", "nofile"}, {0, "blocking signals", ""}} {
		err := c.report(stage.Message{Kind: stage.EvFault, PID: x.index, Value: int64(unix.EPERM)}, nil, Hooks{})
		if f := new(steps.Fault); !errors.As(err, &f) || f.Step != x.step || f.Object != x.object || f.Errno != unix.EPERM {
			t.Errorf("instruction %d: %v, want %s %s", x.index, err, x.step, x.object)
		}
	}
}

// TestTailIsForTheHelper: a plan with a user namespace, or with descriptors that the helper's process 1 has not, has no
// tail.
func TestTailIsForTheHelper(t *testing.T) {
	p := plans.Smallest("/usr/bin/true")
	p.Namespaces.User = false
	p.Fds = []plan.FdRole{plan.FdNetns}
	if _, err := NewTail(p); err == nil {
		t.Error("a tail that hands out the network namespace")
	}
	p.Fds, p.Namespaces.User = nil, true
	if _, err := NewTail(p); err == nil {
		t.Error("a tail beside a user namespace")
	}
}
