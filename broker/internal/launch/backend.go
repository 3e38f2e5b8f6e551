package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
)

// Job is what a backend carries out. A sandboxing backend takes everything from Plan; the others, which
// have none, take Path, Argv and Env.
type Job struct {
	Plan *plan.Plan
	Path string
	Argv []string
	Env  []string
	Dir  string // to work in; "": the caller's
	Options
}

// Backend is one way of running a job.
type Backend interface {
	Name() string
	// Available says why the backend cannot be used here, or nil.
	Available() error
	// Execute runs the job to its end. See Run for the errors.
	Execute(ctx context.Context, j Job) (Result, error)
}

// ErrUnavailable is wrapped by errors that mean that this host has no sandbox to offer at all.
var ErrUnavailable = errors.New("no sandbox can be built on this host")

// Native builds the sandbox with the kernel's own means, without privilege.
type Native struct{}

// Name implements Backend.
func (Native) Name() string { return "native" }

// Available implements Backend. Only building one shows whether a sandbox can be built; what can be seen
// beforehand is that there are no namespaces to be had.
func (Native) Available() error {
	if _, err := os.Lstat("/proc/self/ns/user"); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Execute implements Backend.
func (Native) Execute(ctx context.Context, j Job) (Result, error) {
	res, err := Run(ctx, j.Plan, j.Options)
	return res, Unavailable(err)
}

// Unavailable adds to err what it means if it is a fault that no sandbox of this host's escapes.
func Unavailable(err error) error {
	var f *steps.Fault
	if errors.As(err, &f) && givesNone(f) {
		return &unavailable{err}
	}
	return err
}

// givesNone says whether the fault means that this host gives no sandbox at all: no namespaces, or no
// identity in them.
func givesNone(f *steps.Fault) bool {
	// AppArmor's restriction gives a namespace, and nothing in it: the first thing that fails is a mount. In an engine's
	// container it can be the host name, which its filter refuses, or a /proc, while parts of its own are covered.
	switch {
	case f.IsExec():
		return false
	case f.Step == "cloning", f.Step == "making mounts private", f.Step == "setting host name",
		f.Step == "mounting "+string(plan.Proc), strings.HasPrefix(f.Object, "/proc/self/"):
	default:
		return false
	}
	switch f.Errno {
	case syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL, syscall.ENOSYS:
		return true
	}
	return false
}

// unavailable keeps the words of the fault and adds what it means.
type unavailable struct{ error }

func (u *unavailable) Unwrap() []error { return []error{u.error, ErrUnavailable} }

// Passthrough runs the job on the host, without any sandbox.
type Passthrough struct{}

// Name implements Backend.
func (Passthrough) Name() string { return "passthrough" }

// Available implements Backend.
func (Passthrough) Available() error { return nil }

// heard are the signals to pass on: not what this process was told to ignore, so that the program ignores it as well.
func heard() []syscall.Signal {
	return slices.DeleteFunc(slices.Clone(forwarded[:]), func(s syscall.Signal) bool { return signal.Ignored(s) })
}

// Execute implements Backend.
func (Passthrough) Execute(ctx context.Context, j Job) (Result, error) {
	begin := time.Now()
	files := make([]*os.File, 3)
	copy(files, j.Stdio[:])
	var p *os.Process
	started := make(chan struct{})
	if !j.Stays { // before the program can have said anything: whoever has heard from it may send it a signal
		defer forward(heard(), j.Signals, func(s syscall.Signal) {
			if <-started; p != nil {
				_ = p.Signal(s)
			}
		})()
	}
	p, err := os.StartProcess(j.Path, j.Argv, &os.ProcAttr{Env: j.Env, Dir: j.Dir, Files: files})
	close(started)
	if err != nil {
		return Result{}, &ExecError{Status: 126, Path: j.Path, Err: err}
	}
	expired := false
	if j.Timeout > 0 {
		t := time.AfterFunc(j.Timeout, func() { expired = true; _ = p.Kill() })
		defer t.Stop()
	}
	defer context.AfterFunc(ctx, func() { _ = p.Kill() })()
	st, err := p.Wait()
	if err != nil {
		return Result{}, fmt.Errorf("waiting for %s: %w", j.Path, err)
	}
	res := resultOf(st.Sys().(syscall.WaitStatus))
	if expired {
		res = Result{Status: 124, TimedOut: true}
	}
	res.Duration = time.Since(begin)
	return res, ctx.Err()
}
