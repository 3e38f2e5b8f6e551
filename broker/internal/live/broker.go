//go:build linux

package live

import (
	"context"
	"os"
	"time"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/confine"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// Broker is the process that runs a session, and whom it speaks to.
type Broker struct {
	Env     []string
	Std     [3]*os.File
	Context context.Context //nolint:containedctx // of another program's run; nil: this process is the session's own

	Early   child.Early // process 1, where it was made before anything else; nil: none
	Fault   error       // why there is none, if that was tried
	Signals func()      // what launch.AsStarted has returned

	Idle   bool             // there is no program: others are started later
	Stood  func(sid string) // told when the program runs and the session can be reached, which is then made sure of
	Output string           // a file that moves into the session's folder

	Answer func(context.Context, prompt.Question) (prompt.Answer, bool) // answers questions; nil: people do

	Sudo func(helper string) bool // asks a person whether the helper may be started through sudo; nil: nobody says so

	// asks a person whether an agent is shown its login; true: the settings are others now; nil: nobody is asked
	Login func(*request.Request, request.Settings) bool

	Lost func([]planner.Loss) // told what cannot be had, for a person who is told by the caller; may be nil

	Warn    func(string)    // tells a person a line
	Note    func(string)    // tells a person a text as it is
	Until   func(time.Time) // told how long either may wait for who reads; nil: they do not wait
	Notices func([]policy.Notice)
}

// Outcome is what came of a run.
type Outcome struct {
	launch.Result
	Timeout time.Duration
	Report  *report.Report // nil: without a sandbox, or nothing was run
	Audit   string         // the file of the session's audit log

	Plan   *plan.Plan // of --dry-run
	About  string     // profile, mode and what is let in, of the same
	Asks   bool       // about what is not granted, likewise
	Losses []planner.Loss
}

// context ends the program when its caller does not want it any more.
func (b *Broker) context() context.Context {
	if b.Context != nil {
		return b.Context
	}
	return context.Background()
}

// afterStart is what is done once the program has run for a moment; another program's memory is its own.
func (b *Broker) afterStart() func() {
	if b.Context != nil {
		return nil
	}
	return confine.ReleaseStart
}
