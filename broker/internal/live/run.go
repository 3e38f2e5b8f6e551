//go:build linux

package live

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/doors"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/helperclient"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
)

// run is one attempt to carry a request out, and what has come of it so far. What was typed stays as it is.
type run struct {
	request.Request
	argv           []string // the program: what was typed, or a shell
	profile, mode  string   // those of the settings
	agent          string   // the name of its profile, "" for none
	unkept         []string // credentials that it takes and nobody has added
	strict         bool
	timeout        time.Duration
	engine         string         // of a dynamic session, see there
	noFuse         bool           // it was tried, and does not work here
	sameName       bool           // so was setting a host name
	replans        int            // how often what was planned had gone by the time that it was mounted
	helper         *launch.Helper // where there are no user namespaces; nil elsewhere
	backend        string         // of the settings
	inPlace        bool           // nor a helper: Landlock and the filter alone hold
	asks           bool           // somebody wanted to be asked, where nobody can be
	idle, detached bool           // there is no program; this is the detached broker
	audit          string         // the file of its audit log
	secrets        []string       // secret files that rules show
	losses         []planner.Loss // what this host cannot enforce of it
	told           []planner.Loss // what the person was told of that, in this attempt or before
	starterTold    bool           // that it stands
	doors          *doors.Doors
	credentials    []string // for the status line
	labels         []string // that the session carries from the start
}

// newRun begins with what was typed.
func newRun(q request.Request) *run {
	return &run{Request: q, argv: q.Argv, profile: q.Profile, mode: q.Mode, strict: q.Strict, timeout: q.Timeout}
}

// inputOf is what of r the planner's input follows from.
func (b *Broker) inputOf(r *run) *input.Run {
	helper, bubblewrap := input.BuiltBy(r.helper)
	return &input.Run{Request: &r.Request, Argv: r.argv, Mode: r.mode, Engine: r.engine, Idle: r.idle,
		Helper: helper, Bubblewrap: bubblewrap, InPlace: r.inPlace, Asks: r.asks, VM: r.backend == backendVM,
		Env: b.Env, Std: b.Std, Warn: b.Warn}
}

// Run does what the request asks for: it runs its program, or a shell.
func (b *Broker) Run(q request.Request) (Outcome, error) {
	if b.Early == nil {
		b.Early = child.NoEarly{}
	}
	q.ForLearning()
	r := newRun(q)
	r.detached, r.idle = b.Stood != nil, b.Idle
	switch {
	case r.idle:
		r.argv = []string{"/bin/sh"} // never started; it names the program that a session is about
	case len(r.argv) == 0:
		r.argv = []string{cmp.Or(host.Lookup(b.Env, "SHELL"), "/bin/sh")}
	}
	return b.run(r)
}

// run makes one attempt, and another where the host has shown meanwhile that it takes another one.
func (b *Broker) run(r *run) (Outcome, error) {
	// Nobody of the same user can read this process's memory or attach to it from here on.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return Outcome{}, fmt.Errorf("keeping other programs from tracing sbx: %w", err)
	}
	again := r.helper != nil || r.inPlace
	b.chooseHelper(r)
	if !r.DryRun {
		r.helper.Begin() // it starts while the plan is made
		defer r.helper.End()
	}
	x := &attempt{b: b, r: r}
	if err := x.configure(again); err != nil {
		return Outcome{}, err
	}
	if !x.cfg.Sandbox.Enabled {
		return b.passthrough(r, x.facts, x.cfg, x.cfg.Origin("sandbox.enabled"))
	}
	go guard.BuiltIn() // compiled while the plan is made
	if err := x.ask(); err != nil {
		return Outcome{}, err
	}
	defer x.kept.Close()
	if r.DryRun {
		return x.dryRun()
	}
	if err := x.open(); err != nil {
		return Outcome{}, err
	}
	defer x.credentials.Close() // once the network, which starts it, has come that far
	defer x.net.Close()
	defer r.doors.Close()
	if err := x.prepare(); err != nil {
		x.limited.End(child.Aftermath{})
		x.s.Discard()
		if err = b.fallback(r, x.facts, launch.Unavailable(err)); err == nil {
			return b.run(r)
		}
		return Outcome{}, err
	}
	res, err := x.execute()
	reached, err := x.end(res, err)
	if err == nil {
		return x.outcome(res, reached), nil
	}
	x.approvals.discardLearned()
	x.s.Discard()
	if refusal := new(planner.Refusal); errors.As(err, &refusal) { // it says what it is, and what to do
		return Outcome{}, err
	}
	if vanished(err) && r.replans < maxReplans {
		r.replans++
		return b.run(r)
	}
	if err = b.fallback(r, x.facts, buildError(err)); err == nil {
		return b.run(r) // the plan is another one there
	}
	return b.unavailable(r, x.facts, x.cfg, err)
}

// create makes the session's folder, or takes the one that process 1 sets up already.
func (b *Broker) create(root, name string) (*session.Session, error) {
	if dir := b.Early.TakeSession(); dir != "" {
		if name == "" && path.Dir(dir) == root {
			if s, err := session.Adopt(dir); s != nil || err != nil {
				return s, err
			}
		}
		b.Early.Discard()
	}
	return session.Create(root, name)
}

// sessionHint says what to do when the session's folder could not be made.
func sessionHint(err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EACCES) {
		return session.RecordHint
	}
	return ""
}

// maxReplans is how often a run is planned anew because the host has changed meanwhile.
const maxReplans = 10

// vanished says whether something that was planned had gone, or was another, by the time that it was mounted or served.
func vanished(err error) bool {
	var exec *launch.ExecError
	var f *steps.Fault
	if errors.As(err, &exec) || errors.As(err, &f) && f.IsExec() {
		return false
	}
	if f != nil && f.Step == "mounting "+string(plan.Fuse) && f.Errno == unix.EINVAL { // not on a directory any more
		return true
	}
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ENODEV)
}

// buildError words the failure to build a sandbox.
func buildError(err error) error {
	var f *steps.Fault
	if errors.As(err, &f) && !f.IsExec() {
		return fmt.Errorf("building sandbox: %w", err)
	}
	var exec *launch.ExecError
	var refused *helperclient.Refusal // the helper has no part in the session's folder
	if hint := sessionHint(err); hint != "" && f == nil && !errors.As(err, &exec) && !errors.As(err, &refused) {
		return &planner.Refusal{What: "building sandbox", Err: err, Hint: hint}
	}
	return err
}

// checkLosses makes every loss an error under --strict, but for the price of a switch.
func (b *Broker) checkLosses(r *run, losses []planner.Loss) error {
	var all []string
	for _, l := range losses {
		if !l.Price {
			all = append(all, l.String())
		}
	}
	if !r.strict || len(all) == 0 {
		return nil
	}
	return &planner.Refusal{What: "--strict: " + strings.Join(all, "; "),
		Hint: "run without --strict to accept what is lost"}
}

// unavailable is what happens when no sandbox could be built: an error, unless the configuration says
// that the command may then run without one.
func (b *Broker) unavailable(r *run, facts host.Facts, cfg request.Settings, err error) (Outcome, error) {
	err = inSandbox(err)
	how := cfg.Sandbox.FallbackOnUnavailable
	if how == "block" || how == "" || !errors.Is(err, launch.ErrUnavailable) {
		return Outcome{}, err
	}
	b.Warn(err.Error())
	return b.passthrough(r, facts, cfg, "fallback_on_unavailable = "+how+", "+
		cfg.Origin("sandbox.fallback_on_unavailable"))
}
