//go:build linux

package launch

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
)

// Options are what the plan does not say because it lies outside the sandbox.
type Options struct {
	Stdio   [3]*os.File   // the caller's descriptors
	Says    bool          // the caller writes to the last of them, too, while the program runs, which may not change that
	Timeout time.Duration // 0: none
	// Expiring is called when the time is over, before everything is killed.
	Expiring func()
	// Early is what was begun before the plan was known, or nil, see child.Hooks.
	Early child.Early
	// Cgroup is the descriptor of the control group that process 1 begins in, or 0.
	Cgroup int
	// Cloned is given process 1 before it begins. It may be nil.
	Cloned func(pid int) error
	// Building is called while the child builds the sandbox, which leaves this process a millisecond of
	// its own. Its error ends the sandbox before its program starts. It may be nil.
	Building func(*child.Child) error
	// Standing is called once the sandbox stands, before its program has come far. It must not wait. It may
	// be nil.
	Standing func(*Running)
	// Listener is given the seccomp listener of the plan and runs until the sandbox has ended. It may be
	// nil if the plan has none.
	Listener func(*os.File)
	// Network is what the plan joins, see child.Hooks.
	Network *netns.Network
	// Maps writes the identity maps of a plan with subordinate ids, see child.Hooks.
	Maps func(pid int) error
	// Fuse serves the plan's FUSE file systems, see child.Hooks.
	Fuse func(c *child.Child, m *plan.Mount, fd int) error
	// Tree takes the root of a tree of the plan that the broker alone writes, see child.Hooks.
	Tree func(m *plan.Mount, root *os.File)
	// AfterStart is called when the program has run for 0.4 seconds. It must not wait, and may be nil.
	AfterStart func()
	// Exits says that the caller exits as soon as Run returns, Stays that it is another program, which goes on: its
	// signals are not passed on.
	Exits, Stays bool
	// Signals is what AsStarted has returned, or nil.
	Signals func()
	// Folder and Remember: see child.Hooks.
	Folder   child.Folder
	Remember bool
	// Join copies between the caller's terminal and the sandbox's; nil copies plainly.
	Join Join
}

// Running is a sandbox that stands.
type Running struct {
	Child   *child.Child
	Plan    *plan.Plan
	signals func()       // of Options
	early   atomic.Int32 // signal that came before the program ran
	told    atomic.Bool  // by Interrupt: of the SIGINT that comes next
	passed  atomic.Int32 // signal that the program was told to end by
	ended   atomic.Bool  // the program has: signals are this process's own
	late    atomic.Bool  // this process ought to have ended by now
	urge    func()       // has nobody wait for what a reader does not take

	frozen atomic.Bool
	// Freezer stops everything in the sandbox at once, process 1 too, or lets it go on; nil where there is no control
	// group.
	Freezer func(on bool) error
	still   atomic.Bool // by Freezer
}

// Result is how the program ended.
type Result struct {
	Status   int // as a shell reports it: exit status, or 128 + signal; 124 after a time-out
	Signal   syscall.Signal
	TimedOut bool
	After    child.Aftermath
	Duration time.Duration
	// Unwritten says why what the program wrote could not all be passed on.
	Unwritten error
}

// Run builds the sandbox, runs its program to the end and tears everything down. The error is a
// *steps.Fault when the sandbox could not be built, an *ExecError when the program could not be
// started; nothing is left in either case.
//
// All waiting is done by the calling goroutine in system calls of its own thread: handing a result
// from one goroutine to another that is locked to its thread costs two thread switches, which is a
// tenth of what building the whole sandbox costs.
func Run(ctx context.Context, p *plan.Plan, opt Options) (Result, error) {
	return run(ctx, p, opt, child.Start)
}

// starter is child.Start, or the same through the helper.
type starter func(*plan.Plan, stage.Stdio, child.Hooks) (*child.Child, error)

func run(ctx context.Context, p *plan.Plan, opt Options, start starter) (Result, error) {
	defer runtime.UnlockOSThread() // see child.Start
	begin := time.Now()
	std, err := prepareStdio(p, opt.Stdio, opt.Says)
	if err != nil {
		return Result{}, err
	}
	defer std.close()
	term := openTerminal(p, opt.Stdio)
	term.join = opt.Join
	defer term.restore()
	r := &Running{Plan: p, signals: opt.Signals}
	release := func() {}
	child, err := start(p, std.child, child.Hooks{Cgroup: opt.Cgroup, Cloned: opt.Cloned, Maps: opt.Maps, Fuse: opt.Fuse,
		Tree: opt.Tree, Network: opt.Network, Folder: opt.Folder, Remember: opt.Remember,
		Building: func(c *child.Child) error {
			if opt.Building != nil {
				if err := opt.Building(c); err != nil {
					return err
				}
			}
			r.Child = c
			if opt.Stays {
				release = r.followSize(term)
				return nil
			}
			release = r.forwardSignals(term)
			return nil
		}, AfterStart: opt.AfterStart, Early: opt.Early})
	std.closeChildSide()
	if err != nil {
		release()
		if s := syscall.Signal(r.early.Load()); s != 0 {
			return Result{Status: 128 + int(s), Signal: s}, nil
		}
		return Result{}, err
	}
	r.Child = child
	if opt.Standing != nil {
		opt.Standing(r)
	}
	std.relay()
	term.start(child)
	listen(child, opt.Listener)
	res, err := r.follow(ctx, opt, std, term)
	if opt.Exits { // to release would switch between threads a dozen times
		time.AfterFunc(UnreadFor, func() { r.late.Store(true) })
	} else {
		release()
	}
	res.Duration = time.Since(begin)
	return res, err
}

// follow waits for the program's end, and until what it wrote is passed on.
func (r *Running) follow(ctx context.Context, opt Options, std *stdio, term *terminal) (Result, error) {
	urgent, urge := context.WithCancel(ctx)
	defer urge()
	r.urge = urge
	if opt.Timeout > 0 {
		defer time.AfterFunc(opt.Timeout, urge).Stop()
	}
	res, err := r.wait(ctx, opt.Timeout, opt.Expiring, term)
	if res.Signal != 0 && res.Signal == syscall.Signal(r.passed.Load()) {
		urge()
	}
	r.ended.Store(true)
	r.Child.End(opt.Exits)
	res.After = r.Child.Aftermath()
	if err == nil {
		r.Child.Remember()
	}
	term.drain()
	res.Unwritten = std.drain(urgent.Done())
	return res, err
}

// listen hands the filter's descriptor to the listener, if there are both.
func listen(c *child.Child, listener func(*os.File)) {
	f := c.Fds[plan.FdSeccomp]
	if f == nil || listener == nil {
		return
	}
	delete(c.Fds, plan.FdSeccomp) // from here on the listener's, which may outlast the child by a moment
	go func() {
		defer f.Close()
		listener(f)
	}()
}

func execError(p *plan.Plan, f *steps.Fault) error {
	if !f.IsExec() {
		return f
	}
	status := 126
	if f.Errno == syscall.ENOENT || f.Errno == syscall.ENOTDIR {
		status = 127
	}
	return &ExecError{Status: status, Path: string(p.Process.Path), Err: f.Errno}
}

// wait collects the program's end, in whichever way it comes. A time-out and a cancelled context kill
// the sandbox, which ends the waiting too.
func (r *Running) wait(ctx context.Context, timeout time.Duration, expiring func(), term *terminal) (Result, error) {
	var expired atomic.Bool
	if timeout > 0 {
		t := time.AfterFunc(timeout, func() {
			expired.Store(true)
			if expiring != nil {
				expiring()
			}
			r.Child.SendKill()
		})
		defer t.Stop()
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, r.Child.SendKill)()
	}
	ws, err := r.events(term)
	if f := r.Child.StartFault(); f != nil {
		return Result{}, execError(r.Plan, f)
	}
	if expired.Load() {
		return Result{Status: 124, TimedOut: true}, nil
	}
	if ctx.Err() != nil {
		return Result{Status: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}, ctx.Err()
	}
	if s := syscall.Signal(r.early.Load()); err != nil && s != 0 {
		return Result{Status: 128 + int(s), Signal: s}, nil
	}
	if err != nil { // process 1 was killed from outside
		return Result{Status: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}, nil
	}
	return resultOf(ws), nil
}

// events follows the main program until it has ended.
func (r *Running) events(term *terminal) (syscall.WaitStatus, error) {
	if r.Plan.Process.AsPID1 {
		return r.Child.WaitInit()
	}
	for {
		ev, err := r.Child.Next()
		if err != nil {
			return 0, err
		}
		switch {
		case ev.PID != r.Child.Main(), ev.Stopped && r.frozen.Load():
		case ev.Stopped:
			term.stopped(r.Child, ev.Status.StopSignal())
		default:
			return ev.Status, nil
		}
	}
}

func resultOf(ws syscall.WaitStatus) Result {
	if ws.Signaled() {
		return Result{Status: 128 + int(ws.Signal()), Signal: ws.Signal()}
	}
	return Result{Status: ws.ExitStatus()}
}
