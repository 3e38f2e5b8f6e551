package stage

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"sbx/shared/plan"
	"sbx/shared/wire"
)

// Attach is the broker's side of Direct: it follows, on sock, what the helper and then process 1 report.
// parent must return once the helper has ended; sooner process 1 is not this process's to wait for.
func Attach(p *plan.Plan, sock int, std Stdio, hooks Hooks, parent func(), tail *Tail) (*Child, error) {
	c := &Child{sock: sock, Fds: map[plan.FdRole]*os.File{}, Pidfd: -1, plan: p, parent: parent, block: tail.block, early: NoEarly{}, control: &tail.block.control}
	c.rest, c.start = tail.rest, tail.start
	c.settle(hooks.Settled)
	err := c.nameSteps(std)
	if err == nil {
		err = c.awaitReady(p, hooks)
	}
	if err != nil {
		c.Kill()
		parent()
		c.Close()
		return nil, err
	}
	return c, nil
}

// nameSteps makes the helper's tape, for the names of its steps.
func (c *Child) nameSteps(std Stdio) error {
	t, err := setupOf(c.plan.Setup(), std)
	c.setup = t
	return err
}

var errBeforeReady = errors.New("sbx-helper ended before the sandbox stood")

// report takes in what only a sandbox of the helper's says before it is ready.
func (c *Child) report(m message, fds []int, hooks Hooks) error {
	switch {
	case m.kind == int64(wire.Started) && len(fds) == 1 && c.PID == 0:
		c.PID, c.Pidfd = int(m.pid), fds[0]
		if hooks.Cloned != nil {
			return hooks.Cloned(c.PID)
		}
		return nil
	case m.kind == int64(wire.Refused):
		return &wire.Refusal{Reason: wire.Reason(m.pid), Where: m.value, Errno: syscall.Errno(m.extra)}
	case m.kind == evFault && m.pid >= ofTail:
		return faultAt(c.rest, "setup", fault{m.pid - ofTail, m.value})
	case m.kind == evFault:
		return faultAt(c.setup, "setup", fault{m.pid, m.value})
	}
	return fmt.Errorf("the helper sent message %d before the sandbox was ready", m.kind)
}

// note keeps what process 1 would have left in shared memory.
func (c *Child) note(m message) {
	switch {
	case c.parent == nil:
	case m.kind == evFailed:
		c.control.program.fault = fault{m.pid, m.value}
	case m.kind == evMain:
		atomic.StoreInt64(&c.control.main, m.pid)
	case m.kind == evAfter:
		unpack(&c.control.last, m)
	}
}
