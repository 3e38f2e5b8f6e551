package live

import (
	"time"

	"sbx/broker/internal/doors"
	"sbx/broker/internal/input"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
)

// run is one attempt to carry a request out, and what has come of it so far. What was typed stays as it is.
type run struct {
	request.Request
	argv           []string // the program: what was typed, or a shell
	profile, mode  string   // those of the settings
	strict         bool
	timeout        time.Duration
	engine         string         // of a dynamic session, see there
	noFuse         bool           // it was tried, and does not work here
	anew           int            // how often what was planned had gone by the time that it was mounted
	helper         *launch.Helper // where there are no user namespaces; nil elsewhere
	idle, detached bool           // there is no program; this is the detached broker
	audit          string         // the file of its audit log
	losses         []planner.Loss // what this host cannot enforce of it
	stood          bool           // whose starter was told
	doors          *doors.Doors
}

// newRun begins with what was typed.
func newRun(q request.Request) *run {
	return &run{Request: q, argv: q.Argv, profile: q.Profile, mode: q.Mode, strict: q.Strict, timeout: q.Timeout}
}

// asked is what of it the planner's input follows from.
func (b *Broker) asked(r *run) *input.Run {
	return &input.Run{Request: &r.Request, Argv: r.argv, Mode: r.mode, Engine: r.engine, Idle: r.idle,
		Helper: r.helper != nil,
		Env:    b.Env, Std: b.Std, Warn: b.Warn}
}
