//go:build linux

package launch

import (
	"context"
	"errors"
	"strings"
	"syscall"

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
	// Execute runs the job to its end. See Run for the errors.
	Execute(ctx context.Context, j Job) (Result, error)
}

// Native builds the sandbox with the kernel's own means, without privilege.
type Native struct{}

// Execute implements Backend.
func (Native) Execute(ctx context.Context, j Job) (Result, error) {
	res, err := Run(ctx, j.Plan, j.Options)
	return res, Unavailable(err)
}

// Try runs the smallest sandbox p natively, once more if no host name can be set here; sameName says so.
func Try(ctx context.Context, p *plan.Plan, o Options) (sameName bool, err error) {
	_, err = Run(ctx, p, o)
	if f := new(steps.Fault); errors.As(err, &f) && f.IsHostName() {
		p.Hostname = ""
		_, err = Run(ctx, p, o)
		return true, err
	}
	return false, err
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
	case f.Step == "cloning", f.Step == "making mounts private", f.IsHostName(),
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

// Execute implements Backend.
func (Passthrough) Execute(ctx context.Context, j Job) (Result, error) {
	end, err := Outside{Path: j.Path, Argv: j.Argv, Env: j.Env, Dir: j.Dir, Stdio: j.Stdio, Timeout: j.Timeout,
		Before: j.Signals, Stays: j.Stays}.Run(ctx)
	if err != nil && err != ctx.Err() {
		return Result{}, err
	}
	res := resultOf(end.Wait)
	if end.TimedOut {
		res = Result{Status: 124, TimedOut: true}
	}
	res.Duration = end.Duration
	return res, err
}
