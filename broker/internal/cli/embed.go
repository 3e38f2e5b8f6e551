package cli

import (
	"context"
	"errors"
	"os"

	"sbx/broker/internal/child"
	"sbx/broker/internal/command"
	"sbx/broker/internal/confine"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
	"sbx/broker/internal/steps"
)

// Embedded is one run for a program that is not sbx (package sandbox).
type Embedded struct {
	Options  []string // of sbx run
	Argv     []string
	Env      []string // what sbx run would have been started with
	Stdio    [3]*os.File
	Messages *os.File // what sbx run would have said
}

// Failure is why a run did not come about or did not come to its end.
type Failure struct {
	Err    error
	Hint   string
	Status int // what sbx run would have exited with
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// IsRefusal says whether it is something that was asked for and is not given, or cannot be understood.
func (f *Failure) IsRefusal() bool {
	var u *option.Mistake
	var r *planner.Refusal
	return errors.As(f.Err, &u) || errors.As(f.Err, &r)
}

// IsFault says whether a step of the set-up failed.
func (f *Failure) IsFault() bool {
	var s *steps.Fault
	return errors.As(f.Err, &s)
}

// IsUnavailable says whether this host has no sandbox to offer.
func (f *Failure) IsUnavailable() bool { return errors.Is(f.Err, launch.ErrUnavailable) }

// Run is sbx run in another program's process. The error is a *Failure.
func (e Embedded) Run(ctx context.Context) (launch.Result, error) {
	t := &term{Term: command.Term{Env: e.Env, Std: e.Stdio, Messages: e.Messages}, host: ctx, early: child.NoEarly{}}
	r := &request.Request{}
	rest, err := r.Parse(e.Options)
	if err == option.ErrHelp || err == nil && (len(rest) > 0 || len(e.Argv) == 0 || r.DryRun || r.Detach || r.NoSandbox) {
		err = wrong("an embedded run takes options of sbx run that run something in a sandbox, and a program", "")
	}
	if err == nil {
		err = r.OnlyStatic()
	}
	if err != nil {
		t.fail(err)
		return launch.Result{}, t.failure
	}
	r.Argv = e.Argv
	status := t.runArgv(*r)
	if t.failure != nil {
		return launch.Result{Status: status}, t.failure
	}
	t.result.Status = status
	return t.result, nil
}

// context ends the program when its caller does not want it any more.
func (t *term) context() context.Context {
	if t.host != nil {
		return t.host
	}
	return context.Background()
}

// settled is what is done once the program has run for a moment; another program's memory is its own.
func (t *term) settled() func() {
	if t.host != nil {
		return nil
	}
	return confine.Settle
}
