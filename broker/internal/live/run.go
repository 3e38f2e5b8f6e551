package live

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/audit"
	"sbx/broker/internal/child"
	"sbx/broker/internal/gate"
	"sbx/broker/internal/helperclient"
	"sbx/broker/internal/host"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
	"sbx/broker/internal/session"
	"sbx/broker/internal/steps"
	"sbx/broker/plan"
)

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
		return Outcome{}, fmt.Errorf("making the broker undumpable: %w", err)
	}
	again := r.helper != nil
	b.helperAtOnce(r)
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
	if err := x.ask(); err != nil {
		return Outcome{}, err
	}
	if r.DryRun {
		return x.dryRun()
	}
	if err := x.open(); err != nil {
		return Outcome{}, err
	}
	defer x.net.Close()
	defer r.doors.Close()
	if err := x.prepare(); err != nil {
		x.limited.End(child.Aftermath{})
		x.s.Discard()
		if err = b.instead(r, launch.Unavailable(err)); err == nil {
			return b.run(r)
		}
		return Outcome{}, err
	}
	res, err := x.execute()
	reached, err := x.end(res, err)
	if err == nil {
		return x.outcome(res, reached), nil
	}
	x.asks.unlearned()
	x.s.Discard()
	if vanished(err) && r.anew < maxAnew {
		r.anew++
		return b.run(r)
	}
	if err = b.instead(r, buildError(err)); err == nil {
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

// maxAnew is how often a run is planned anew because the host has changed meanwhile.
const maxAnew = 3

// vanished says whether something that was planned had gone, or was another, by the time that it was mounted or served.
func vanished(err error) bool {
	var exec *launch.ExecError
	var f *steps.Fault
	if errors.As(err, &exec) || errors.As(err, &f) && f.IsExec() {
		return false
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

// announce prints what the user should know before the program runs.
func (b *Broker) announce(r *run, p *plan.Plan, losses []planner.Loss) {
	if r.Quiet {
		return
	}
	for _, l := range losses {
		b.Warn(l.String())
	}
	if r.Verbose {
		b.Note(p.Text())
	} else if launch.HasTerminal([3]*os.File{nil, nil, b.Std[2]}) {
		b.Note(statusLine(r, p))
	}
}

func statusLine(r *run, p *plan.Plan) string {
	net := "no network"
	switch {
	case !p.Namespaces.Net:
		net = "host network"
	case p.Namespaces.JoinNet:
		net = "network"
	}
	for _, d := range r.doors.Names() {
		net += ", " + d
	}
	var rw []string
	for i := range p.Mounts {
		if m := &p.Mounts[i]; (m.Kind == plan.Bind || m.Kind == plan.Fuse) && m.Access == plan.ReadWrite && !m.Device &&
			m.Source == m.Target && !nested(rw, plan.Quote(m.Target)) {
			rw = append(rw, plan.Quote(m.Target))
		}
	}
	if len(rw) == 0 {
		rw = []string{"nothing"}
	}
	how := r.mode
	if r.engine == gate.EngineNotify {
		how += " (notify)"
	}
	return fmt.Sprintf("sbx: %s, %s, %s, rw: %s (sid %s)\n", r.profile, how, net, strings.Join(rw, " "), p.Session)
}

// nested says whether p lies below a path that is listed already.
func nested(list []string, p string) bool {
	for _, l := range list {
		if strings.HasPrefix(p, l+"/") {
			return true
		}
	}
	return false
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

// passthrough runs the command on the host: the off switch, never a fallback that nobody sees.
func (b *Broker) passthrough(r *run, facts host.Facts, cfg request.Settings, why string) (Outcome, error) {
	b.Early.End()
	b.Warn("NO SANDBOX (" + why + "): " + plan.Bytes(r.argv[0]).Quote() + " runs on the host with all of your rights")
	in := &planner.Input{Argv: r.argv, Env: b.Env, FS: host.FS{}}
	exe, err := planner.LookPath(in, facts.Cwd)
	if err != nil {
		return Outcome{}, err
	}
	if err := b.auditUnsandboxed(r, facts, cfg, why); err != nil {
		return Outcome{}, &planner.Refusal{What: "writing the audit line of a run without a sandbox", Err: err,
			Hint: "sbx does not run anything on the host that it cannot record"}
	}
	var backend launch.Backend = launch.Passthrough{}
	res, err := backend.Execute(b.context(), launch.Job{Path: exe, Argv: r.argv, Env: b.Env,
		Options: launch.Options{Stdio: b.Std, Signals: b.Signals, Timeout: r.timeout, Stays: b.Context != nil}})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Result: res}, nil
}

// auditUnsandboxed writes down that something runs on the host.
func (b *Broker) auditUnsandboxed(r *run, facts host.Facts, cfg request.Settings, why string) error {
	root, err := session.Root(host.Lookup(b.Env, "XDG_STATE_HOME"), facts.Home)
	if err != nil {
		return err
	}
	w, err := audit.Create(path.Join(path.Dir(root), "audit"), "nosandbox-"+session.NewID(),
		audit.Options{Syslog: b.forward(cfg)})
	if err != nil {
		return err
	}
	if _, err := w.Append(audit.Event{Kind: "exec", Decision: "allow", Op: "exec", Path: r.argv[0],
		Reason: "no sandbox: " + why, UID: os.Getuid(), PID: os.Getpid()}); err != nil {
		return err
	}
	return w.Close()
}
