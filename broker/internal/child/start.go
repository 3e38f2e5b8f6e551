//go:build linux

package child

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Child is a running sandbox seen from the process that built it.
type Child struct {
	PID   int                      // of process 1, in the caller's PID namespace; another's, perhaps, once it is Gone
	Pidfd int                      // of process 1
	Fds   map[plan.FdRole]*os.File // what the set-up handed over

	plan    *plan.Plan
	root    *Root
	ended   bool // the program's end was reported
	gone    atomic.Bool
	parent  func() // of Attach: returns when the helper has ended; else nil
	outer   int    // bubblewrap, which runs outside as long as process 1; 0: there is none
	sock    int
	block   *Block
	control *stage.Control // of block
	setup   *tape.Tape
	rest    *tape.Tape // of Attach: of the set-up, what the helper does not look into; else nil
	start   *tape.Tape
	reaper  *tape.Tape // of a plan in bubblewrap's words
	asPID1  bool
	spawns  spawns
	early   Early

	remember func() // nil: nothing is to be remembered
}

// Steps is everything that is done, in order.
func (c *Child) Steps() []tape.Step {
	out := append(make([]tape.Step, 0, len(c.setup.Steps)+len(c.start.Steps)+1), tape.Step{Name: "cloning",
		Object: plan.NamespacesText(c.plan.Namespaces)})
	for _, t := range [...]*tape.Tape{c.setup, c.rest, c.start} {
		if t == nil {
			continue
		}
		for i := range t.Steps {
			out = append(out, t.Steps[i].Step)
		}
	}
	return out
}

// Event is what became of a program started in the sandbox.
type Event struct {
	PID     int // as seen inside
	Status  syscall.WaitStatus
	Stopped bool
}

// Start carries out p. The calling goroutine is locked to its thread afterwards, and must stay so until the sandbox has
// ended, if Start has cloned process 1: that dies when the thread that has cloned it does (PR_SET_PDEATHSIG). One of
// hooks.Early was cloned by the first thread of the process, which ends with the process only, so that the goroutine
// need not be locked, which costs a thread and slower switches. The error is a *Fault when a step failed; nothing is
// left then.
func Start(p *plan.Plan, std stage.Stdio, hooks Hooks) (*Child, error) {
	if p.Namespaces.JoinNet != (hooks.Network != nil) {
		return nil, fmt.Errorf("BUG(sbx): the plan and the caller do not agree about a network")
	}
	if hooks.Early == nil {
		hooks.Early = NoEarly{}
	}
	e := hooks.Early.Take(p, std, &hooks)
	if e == nil {
		runtime.LockOSThread()
		moved, closeMoved, err := stage.MoveAway(std[:])
		if err == nil {
			e, err = prepare(p, hooks.Network, hooks.Cgroup)
		}
		if err != nil && hooks.Cgroup > 0 { // a host without clone3: the caller moves process 1, see Cloned
			e, err = prepare(p, hooks.Network, 0)
		}
		copy(std[:], moved)
		closeMoved()
		if err != nil {
			return nil, err
		}
	}
	c := &Child{PID: e.pid, Pidfd: -1, Fds: map[plan.FdRole]*os.File{}, plan: p, sock: e.sock, block: e.block,
		control: &e.block.control, early: hooks.Early}
	if hooks.Remember && e.Done == nil {
		c.remember = func() { hooks.Early.Remember(p, hooks.Folder, std) }
	}
	c.afterStart(hooks.AfterStart)
	if err := c.carryOut(e, std, hooks); err != nil {
		c.Kill()
		c.Close()
		return nil, err
	}
	return c, nil
}

// startTakes is how long a program has run whose broker may do what would have been in its way.
const startTakes = 400 * time.Millisecond

// afterStart has f called, which may be nil, when the program has run for a moment.
func (c *Child) afterStart(f func()) {
	if f != nil {
		time.AfterFunc(startTakes, f)
	}
}

// carryOut has e's process 1 build the sandbox and start the program.
func (c *Child) carryOut(e *Init, std stage.Stdio, hooks Hooks) (err error) {
	if c.Pidfd, err = unix.PidfdOpen(c.PID, 0); err != nil {
		return fmt.Errorf("opening pidfd: %w", err)
	}
	if hooks.Cloned != nil {
		if err := hooks.Cloned(c.PID); err != nil {
			return err
		}
	}
	if e.Done != nil { // it has built the sandbox, or is about to, and begins only now
		c.setup = e.Done
		_, c.start = c.block.tapes()
		if err := c.compileRest(&tape.Tape{}); err != nil {
			return err
		}
		if err := c.awaitReady(c.plan, hooks); err != nil {
			return err
		}
		if err := c.begin(e); err != nil {
			return err
		}
		return c.letStart()
	}
	if err := hooks.Folder.Make(); err != nil {
		return err
	}
	if err := c.compile(e.peer, std); err != nil {
		return err
	}
	if err := c.begin(e); err != nil {
		return err
	}
	if err := c.awaitReady(c.plan, hooks); err != nil {
		return err
	}
	return c.letStart()
}

// letStart has process 1 start the program, see compileStart.
func (c *Child) letStart() error {
	if c.plan.Process.Idle {
		return nil
	}
	if err := steps.Go(c.sock); err != nil {
		return c.explain(fmt.Errorf("starting the program: %w", err))
	}
	return nil
}

// begin has process 1 carry out the tapes that it has not carried out yet.
func (c *Child) begin(e *Init) error {
	if e.Release != nil {
		if err := e.Release(); err != nil {
			return fmt.Errorf("giving process 1 its processors back: %w", err)
		}
	}
	m := stage.Message{Kind: stage.CmdBegin}
	if err := unix.Sendto(c.sock, m.Encode(), unix.MSG_NOSIGNAL, nil); err != nil {
		return c.explain(fmt.Errorf("starting the sandbox: %w", err))
	}
	return nil
}

// compile makes the tapes; sock is the number of the socket in process 1.
func (c *Child) compile(sock int, std stage.Stdio) error {
	c.setup, c.start = c.block.tapes()
	if err := CompileSetup(c.setup, c.plan, sock, std, Folder{}, c.early.Processors(c.plan)); err != nil {
		return err
	}
	return c.compileRest(c.setup)
}

// compileRest makes what comes after the set-up, of which left is what is not carried out yet.
func (c *Child) compileRest(left *tape.Tape) error {
	compileStart(c.start, c.plan)
	if b := c.plan.Bubblewrap; b != nil {
		return c.compileReaper(left)
	}
	lookAt(c.control, c.start, c.plan)
	if c.setup.Full() || c.start.Full() {
		return stage.ErrPlanTooLarge
	}
	if !c.plan.Process.AsPID1 {
		c.control.ExitWithMain = 1
	}
	if c.plan.Identity.HasRanges() {
		c.control.ManyIDs = 1
	}
	c.block.prog.shared = shares(c.plan)
	c.block.load(left, c.start, c.plan.Process.AsPID1, c.plan.Process.Idle)
	c.asPID1 = c.plan.Process.AsPID1
	return nil
}

// Remember leaves the set-up for the next run with the same arguments, if that was wanted.
func (c *Child) Remember() {
	if c.remember != nil {
		c.remember()
	}
}

var errGone = errors.New("the sandbox has ended")

// receive reads one message and the descriptors that came with it.
func (c *Child) receive() (stage.Message, []int, error) {
	var buf [64]byte
	var oob [128]byte
	for {
		c.root.answer(c.sock)
		n, on, flags, _, err := unix.Recvmsg(c.sock, buf[:], oob[:], unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return stage.Message{}, nil, fmt.Errorf("hearing from the sandbox: %w", err)
		}
		m, ok := stage.DecodeMessage(buf[:n])
		var fds []int
		if on > 0 {
			scms, err := unix.ParseSocketControlMessage(oob[:on])
			if err == nil && len(scms) == 1 {
				fds, _ = unix.ParseUnixRights(&scms[0])
			}
		}
		switch {
		case flags&unix.MSG_CTRUNC != 0: // the kernel installs as many as the limit on open files allows
			for _, fd := range fds {
				unix.Close(fd)
			}
			return stage.Message{}, nil, fmt.Errorf("taking descriptors from process 1: %w", unix.EMFILE)
		case !ok:
			return stage.Message{}, nil, errGone
		}
		return m, fds, nil
	}
}

// awaitReady waits until the program can be started, or says what failed.
func (c *Child) awaitReady(p *plan.Plan, hooks Hooks) error {
	defer c.giveRoot()
	next, tree := nextMount(p, 0, served), nextMount(p, 0, judged)
	built, err := func() error { return nil }, error(nil)
	defer func() { _ = built() }()
	for begun := false; ; {
		// The child walks its FUSE file systems soon: they come before everything else.
		if next == len(p.Mounts) && !begun {
			begun = true
			if built, err = c.build(hooks); err != nil {
				return err
			}
		}
		m, fds, err := c.receive()
		if errors.Is(err, unix.EMFILE) { // it is there, and waits
			return err
		}
		if err != nil {
			return c.explain(err)
		}
		switch m.Kind {
		case stage.EvFuse:
			if next == 0 && len(fds) == 2 {
				defer c.early.Together(c.PID)() // until it is ready
			}
			if err := c.serveFuse(p, next, fds, hooks); err != nil {
				return c.because(err)
			}
			next = nextMount(p, next+1, served)
		case stage.EvTree:
			if tree == len(p.Mounts) || len(fds) != 1 || hooks.Tree == nil {
				return fmt.Errorf("process 1 sent a tree that nobody writes")
			}
			hooks.Tree(&p.Mounts[tree], os.NewFile(uintptr(fds[0]), p.Mounts[tree].Target))
			tree = nextMount(p, tree+1, judged)
		case stage.EvMaps:
			if err := c.writeMaps(hooks.Maps); err != nil {
				return c.because(err)
			}
		case stage.EvReady:
			if len(fds) != len(p.Fds) {
				return fmt.Errorf("process 1 handed over %d descriptors, want %d", len(fds), len(p.Fds))
			}
			for i, role := range p.Fds {
				c.Fds[role] = os.NewFile(uintptr(fds[i]), string(role))
			}
			return built()
		default:
			if c.parent != nil {
				if err := c.report(m, fds, hooks); err != nil {
					return err
				}
				continue
			}
			return fmt.Errorf("process 1 sent message %d before it was ready", m.Kind)
		}
	}
}

// because says what process 1 has failed at where err follows from its end: its file system or its socket is no more.
func (c *Child) because(err error) error {
	if !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EPIPE) {
		return err
	}
	_, fds, end := c.receive()
	if end == nil {
		closeAll(fds)
		return err
	}
	return c.explain(err)
}

// explain prefers the fault that the child left behind to the mere fact that it is gone.
func (c *Child) explain(err error) error {
	c.reapInit()
	if c.parent == nil && c.block.prog.unshare != 0 {
		return CloneFault(c.plan.Namespaces, syscall.Errno(c.block.prog.unshare))
	}
	if f := c.control.Setup; f.Errno != 0 {
		return steps.FaultAt(c.setup, f)
	}
	if c.parent != nil && errors.Is(err, errGone) {
		return ErrBeforeReady
	}
	return err
}

// Main is the program's pid as seen inside; 0 before it started and with AsPID1.
func (c *Child) Main() int { return int(c.control.Main) }

// Next waits for the next event. An error means that process 1 is gone: after the main program's exit,
// when its start failed (see StartFault), or because somebody killed it.
func (c *Child) Next() (Event, error) {
	for {
		m, fds, err := c.receive()
		if err != nil {
			c.abandon()
			return Event{}, err
		}
		if m.Kind != stage.EvFailed && c.handle(m, fds) {
			continue
		}
		switch m.Kind {
		case stage.EvFailed:
			c.note(m)
			return Event{}, errGone
		case stage.EvMain, stage.EvAfter:
			c.note(m)
		case stage.EvExited, stage.EvStopped:
			if m.Kind == stage.EvExited && int(m.PID) == c.Main() {
				c.ended = true
				if c.plan.Identity.HasRanges() {
					c.SendKill()
					_, _ = c.reapInit()
				}
			}
			return Event{PID: int(m.PID), Status: syscall.WaitStatus(m.Value), Stopped: m.Kind == stage.EvStopped}, nil
		}
	}
}

// WaitInit waits for process 1 itself and returns its status; with AsPID1 that is the program's.
func (c *Child) WaitInit() (syscall.WaitStatus, error) {
	return c.reapInit()
}

// Gone says that process 1 was waited for, or given up. It may be called at any time.
func (c *Child) Gone() bool { return c.gone.Load() }

func (c *Child) reapInit() (syscall.WaitStatus, error) {
	if c.PID == 0 || c.Gone() {
		return 0, errGone
	}
	if c.parent != nil {
		c.parent() // until then process 1 is nobody's here
	}
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(c.PID, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		c.gone.Store(true)
		return ws, err
	}
}

// StartFault is the fault of the program's start, or nil.
func (c *Child) StartFault() *steps.Fault {
	if c.control.Program.Stop.Errno == 0 {
		return nil
	}
	return steps.FaultAt(c.start, c.control.Program.Stop)
}

// End is Kill and Close. Where process 1 has reported the end of the program, every other process was
// dead before it did so; what the kernel still does then is take the namespaces apart, which nobody
// waits for. A caller that exits says so: process 1 ends with it then, and the two do not compete for the
// processors.
func (c *Child) End(exits bool) {
	c.abandon()
	switch {
	case !c.ended:
		c.Kill()
		c.Close()
	case !exits:
		c.SendKill()
		go func() {
			_, _ = c.reapInit()
			c.Close()
		}()
	}
}

// Close releases the descriptors. The sandbox must have ended.
func (c *Child) Close() {
	for _, f := range c.Fds {
		f.Close()
	}
	unix.Close(c.sock)
	if c.Pidfd >= 0 {
		unix.Close(c.Pidfd)
	}
	// The shared memory stays: somebody who asks late for the program's pid must not fault.
}
