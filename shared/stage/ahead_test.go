package stage

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// waitingChild is process 1 of p that has its tapes and waits to be told to go on.
func waitingChild(t *testing.T, p *plan.Plan) *Child {
	t.Helper()
	e := usualEarly(t)
	pidfd, err := unix.PidfdOpen(e.pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &Child{PID: e.pid, Pidfd: pidfd, plan: p, sock: e.sock, control: &e.block.control, program: &e.block.prog, memory: e.memory, waiting: e}
	if err := c.load(e, Stdio{-1, 1, 2}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Cleanup(c.Kill)
	return c
}

// Process 1 is told to go on when everything that comes before the program is done here, and not before.
func TestGoesOnBeforeReady(t *testing.T) {
	p := smallest("/usr/bin/true")
	c := waitingChild(t, p)
	told := true
	err := c.awaitReady(p, Hooks{Building: func(c *Child) error {
		told = c.waiting == nil
		return nil
	}})
	if err != nil || told || c.waiting != nil {
		t.Fatalf("%v; told before the hook %v, told at the end %v", err, told, c.waiting == nil)
	}
	if ev, err := c.Next(); err != nil || ev.Status.ExitStatus() != 0 {
		t.Fatalf("%+v, %v", ev, err)
	}
}

func TestDoesNotGoOn(t *testing.T) {
	p := smallest("/usr/bin/true")
	c := waitingChild(t, p)
	refused := errors.New("no")
	if err := c.awaitReady(p, Hooks{Building: func(*Child) error { return refused }}); err != refused || c.waiting == nil || c.Main() != 0 {
		t.Errorf("%v; after a hook's error process 1 has been told: %v, the program is %d", err, c.waiting == nil, c.Main())
	}
	served := *p
	served.Gate = &plan.Gate{}
	for name, other := range map[string]*Child{
		"told already":  {plan: p, sock: c.sock},
		"a served root": {plan: &served, sock: c.sock, waiting: c.waiting},
		"no room":       {plan: &plan.Plan{Fds: []plan.FdRole{plan.FdSeccomp}}, sock: -1, waiting: c.waiting},
	} {
		if other.mayGoOn() {
			t.Errorf("%s: process 1 would be told", name)
		}
	}
	next, err := unix.FcntlInt(uintptr(c.sock), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	if ok := (&Child{plan: &plan.Plan{Fds: []plan.FdRole{plan.FdSeccomp, plan.FdPty}}, sock: c.sock, waiting: c.waiting}).mayGoOn(); !ok {
		t.Error("nothing is in the way, and process 1 would not be told")
	}
	if again, err := unix.FcntlInt(uintptr(c.sock), unix.F_DUPFD_CLOEXEC, 0); err != nil || again != next {
		t.Errorf("the next descriptor is %d (%v), want %d: one was left open", again, err, next)
	} else {
		unix.Close(again)
	}
}
