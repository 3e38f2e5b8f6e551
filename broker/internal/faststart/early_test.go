//go:build linux

package faststart

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
)

func usualEarly(t *testing.T) *entered {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	i, err := child.PrepareFor(plans.Smallest("/usr/bin/true"))
	if err != nil {
		t.Fatal(err)
	}
	return &entered{init: i, place: &placement{}}
}

func TestEarlyIsUsedWhereItSuits(t *testing.T) {
	e := usualEarly(t)
	pid := e.init.PID()
	c, err := child.Start(plans.Smallest("/usr/bin/true"), stage.Stdio{-1, 1, 2}, child.Hooks{Early: e})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer c.Kill()
	if c.PID != pid {
		t.Errorf("process 1 is %d, want the early one, %d", c.PID, pid)
	}
}

// A second try comes with what the first one has ended: its memory is gone.
func TestEndedEarlyIsLeftAlone(t *testing.T) {
	e := usualEarly(t)
	e.End()
	e.Unbatch()
	e.End()
	c, err := child.Start(plans.Smallest("/usr/bin/true"), stage.Stdio{-1, 1, 2}, child.Hooks{Early: e})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer c.Kill()
	if ev, err := c.Next(); err != nil || ev.Status.ExitStatus() != 0 {
		t.Errorf("%+v, %v", ev, err)
	}
}

func TestEarlyOfOtherNamespacesIsEnded(t *testing.T) {
	e := usualEarly(t)
	pid := e.init.PID()
	p := plans.Smallest("/usr/bin/readlink", "/proc/self/ns/net")
	p.Namespaces.Net, p.Loopback = false, false
	c, err := child.Start(p, stage.Stdio{-1, 1, 2}, child.Hooks{Early: e})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer c.Kill()
	if c.PID == pid || unix.Kill(pid, 0) != unix.ESRCH {
		t.Errorf("process 1 is %d; the one that did not suit, %d, must be gone", c.PID, pid)
	}
}

func TestEarlyDoesNotTakeOtherDescriptors(t *testing.T) {
	e := usualEarly(t)
	defer e.End()
	f, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if p := plans.Smallest("/usr/bin/true"); e.init.Suits(p, stage.Stdio{int(f.Fd()), 1, 2}) ||
		!e.init.Suits(p, stage.Stdio{-1, 1, 2}) {
		t.Error("a descriptor that was opened after the clone does not exist in process 1")
	}
}
