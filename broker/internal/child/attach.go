//go:build linux

package child

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/helperclient"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
	"sbx.example/sbx/shared/wire"
)

// Attach is the broker's side of Direct and of Within: it follows, on sock, what the helper and then process 1 report.
// parent must return once the helper has ended, or bubblewrap, which ends after process 1; sooner process 1 is not this
// process's to wait for.
func Attach(p *plan.Plan, sock int, std stage.Stdio, hooks Hooks, parent func(), tail *Tail) (*Child, error) {
	c := &Child{sock: sock, Fds: map[plan.FdRole]*os.File{}, Pidfd: -1, plan: p, parent: parent, block: tail.block,
		early: NoEarly{}, control: &tail.block.control, outer: hooks.Outer}
	c.rest, c.start = tail.rest, tail.start
	c.afterStart(hooks.AfterStart)
	err := takeTrees(p, hooks)
	if err == nil {
		err = c.nameSteps(std)
	}
	if err == nil {
		err = c.awaitReady(p, hooks)
	}
	if err == nil {
		err = c.letStart()
	}
	if err != nil {
		c.Kill()
		parent()
		c.Close()
		return nil, err
	}
	return c, nil
}

// takeTrees takes the roots of the trees that the broker alone writes. Inside they are read-only, and what is written
// is the host's own mount: nothing builds a writable one that could be handed over.
func takeTrees(p *plan.Plan, hooks Hooks) error {
	if !p.TakesTrees() {
		return nil
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: stage.Resolve}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if m.Kind != plan.Judged {
			continue
		}
		fd, err := unix.Openat2(unix.AT_FDCWD, m.Target, &how)
		if err != nil {
			return fmt.Errorf("opening %s, which is to be written: %w", plan.Quote(m.Target), err)
		}
		tree := os.NewFile(uintptr(fd), m.Target)
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err != nil || st.Dev != m.Dev || st.Ino != m.Ino || hooks.Tree == nil {
			tree.Close()
			return fmt.Errorf("%s is not what it was when this run was planned: start it again", plan.Quote(m.Target))
		}
		hooks.Tree(m, tree)
	}
	return nil
}

// nameSteps makes the helper's tape, for the names of its steps.
func (c *Child) nameSteps(std stage.Stdio) error {
	if c.plan.Bwrap != nil {
		c.setup = &tape.Tape{}
		c.setup.At("running", "bwrap")
		return nil
	}
	b, err := newBlock()
	if err != nil {
		return err
	}
	defer steps.Unmap(b)
	t, _ := b.tapes()
	err = stage.StepsOf(t, c.plan.Setup(), std)
	c.setup = &tape.Tape{Steps: t.Steps}
	return err
}

// ErrBeforeReady: what builds the sandbox has ended, and may have said why itself.
var ErrBeforeReady = errors.New("what builds the sandbox ended before it stood")

// report takes in what only a sandbox of the helper's says before it is ready.
func (c *Child) report(m stage.Message, fds []int, hooks Hooks) error {
	switch {
	case m.Kind == int64(wire.Started) && len(fds) == 1 && c.PID == 0:
		c.PID, c.Pidfd = int(m.PID), fds[0]
		if c.plan.Bwrap != nil { // it only knows what it is called inside
			c.PID = pidOf(c.Pidfd)
		}
		if hooks.Cloned != nil {
			return hooks.Cloned(c.PID)
		}
		return nil
	case m.Kind == int64(wire.Refused):
		return &helperclient.Refusal{Reason: wire.Reason(m.PID), Where: m.Value, Errno: syscall.Errno(m.Extra)}
	case m.Kind == stage.EvFault && m.PID >= stage.OfTail:
		return steps.FaultAt(c.rest, tape.Stop{Index: m.PID - stage.OfTail, Errno: m.Value})
	case m.Kind == stage.EvFault:
		return steps.FaultAt(c.setup, tape.Stop{Index: m.PID, Errno: m.Value})
	}
	return fmt.Errorf("what builds the sandbox sent message %d before it was ready", m.Kind)
}

// note keeps what process 1 would have left in shared memory.
func (c *Child) note(m stage.Message) {
	switch {
	case c.parent == nil:
	case m.Kind == stage.EvFailed:
		c.control.Program.Stop = tape.Stop{Index: m.PID, Errno: m.Value}
	case m.Kind == stage.EvMain:
		atomic.StoreInt64(&c.control.Main, m.PID)
	case m.Kind == stage.EvAfter:
		unpack(&c.control.Last, m)
	}
}
