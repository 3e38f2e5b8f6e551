package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"sbx/shared/plan"
	"sbx/shared/stage"
)

// Options are what the plan does not say because it lies outside the sandbox.
type Options struct {
	Stdio   [3]*os.File   // the caller's descriptors
	Timeout time.Duration // 0: none
	// Started is called once the sandbox stands and before its program is waited for, with the steps
	// that were carried out. It may be nil.
	Started func(*Running)
}

// Running is a sandbox that stands.
type Running struct {
	Child *stage.Child
	Plan  *plan.Plan
}

// Result is how the program ended.
type Result struct {
	Status   int // as a shell reports it: exit status, or 128 + signal; 124 after a time-out
	Signal   syscall.Signal
	TimedOut bool
	Duration time.Duration
}

// ExecError is the program's own failure to start, not the sandbox's.
type ExecError struct {
	Status int // 126 or 127
	Path   string
	Err    error
}

func (e *ExecError) Error() string {
	return fmt.Sprintf("executing %s: %v", plan.Bytes(e.Path).Quote(), e.Err)
}
func (e *ExecError) Unwrap() error { return e.Err }

// Run builds the sandbox, runs its program to the end and tears everything down. The error is a
// *stage.Fault when the sandbox could not be built, an *ExecError when the program could not be
// started; nothing is left in either case.
func Run(ctx context.Context, p *plan.Plan, opt Options) (Result, error) {
	// The sandbox dies when the thread that cloned it does, so that thread stays here until the end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	std, err := prepareStdio(p, opt.Stdio)
	if err != nil {
		return Result{}, err
	}
	defer std.close()
	term := openTerminal(p, opt.Stdio)
	defer term.restore()
	child, err := stage.Start(p, std.child)
	std.closeChildSide()
	if err != nil {
		return Result{}, err
	}
	defer child.Close()
	defer child.Kill()
	r := &Running{Child: child, Plan: p}
	if opt.Started != nil {
		opt.Started(r)
	}
	if err := child.AwaitStart(p); err != nil {
		return Result{}, execError(p, err)
	}
	std.relay()
	term.start(child)
	stop := watchSignals(r, term)
	defer stop()
	res, err := r.wait(ctx, opt.Timeout, term)
	child.Kill()
	term.drain()
	std.drain()
	res.Duration = time.Since(begin)
	return res, err
}

func execError(p *plan.Plan, err error) error {
	var f *stage.Fault
	if !errors.As(err, &f) || !f.IsExec() {
		return err
	}
	status := 126
	if f.Errno == syscall.ENOENT || f.Errno == syscall.ENOTDIR {
		status = 127
	}
	return &ExecError{Status: status, Path: string(p.Process.Path), Err: f.Errno}
}

// wait collects the program's end, in whichever way it comes.
func (r *Running) wait(ctx context.Context, timeout time.Duration, term *terminal) (Result, error) {
	type end struct {
		status syscall.WaitStatus
		err    error
	}
	done := make(chan end, 1)
	go func() {
		s, err := r.events(term)
		done <- end{s, err}
	}()
	var expire <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expire = t.C
	}
	select {
	case e := <-done:
		if e.err != nil {
			return Result{Status: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}, nil
		}
		return resultOf(e.status), nil
	case <-expire:
		return Result{Status: 124, TimedOut: true}, nil
	case <-ctx.Done():
		return Result{Status: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}, ctx.Err()
	}
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
		case ev.PID != r.Child.Main:
		case ev.Stopped:
			term.suspended(r.Child)
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
