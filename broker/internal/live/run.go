package live

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/audit"
	"sbx/broker/internal/child"
	"sbx/broker/internal/confine"
	"sbx/broker/internal/control"
	"sbx/broker/internal/egress"
	"sbx/broker/internal/gate"
	"sbx/broker/internal/helperclient"
	"sbx/broker/internal/host"
	"sbx/broker/internal/input"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/netns"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
	"sbx/broker/internal/session"
	"sbx/broker/internal/steps"
	"sbx/broker/plan"
	"sbx/shared/tape"
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

// run makes one attempt.
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
	facts := host.Read(b.Env)
	facts.Fuse = facts.Fuse && r.helper == nil && !r.noFuse // the helper mounts no file server
	b.recordInside(facts)
	if r.Workdir == "" && (facts.Cwd == "" || unix.Access(".", unix.R_OK|unix.X_OK) != nil) {
		return Outcome{}, &planner.Refusal{What: "the working directory does not exist any more or cannot be read", Hint: "cd into a directory, or pass --workdir DIR"}
	}
	cfg, err := r.Request.Settings(b.Env, facts, r.Request.ProjectRoot(facts))
	if err != nil {
		return Outcome{}, inSandbox(err)
	}
	if !r.Quiet && !again {
		b.Notices(cfg.Notices)
	}
	if !cfg.Sandbox.Enabled {
		return b.passthrough(r, facts, cfg, cfg.Origin("sandbox.enabled"))
	}
	if r.timeout == 0 {
		r.timeout = cfg.Sandbox.Timeout
	}
	r.strict = r.strict || cfg.Sandbox.Strict
	r.profile, r.mode = cfg.Profile.Name, cfg.Mode(facts)
	r.engine = gate.Choose(r.mode, cfg, facts)
	in, open, err := b.asked(r).Make(cfg, facts)
	if err != nil {
		return Outcome{}, err
	}
	r.doors = open
	asks, err := b.asking(r, cfg, in)
	if err != nil {
		return Outcome{}, err
	}
	refused := &blocked{verb: r.Verbose, print: b.Warn}
	net, err := b.network(r, cfg, in, refused)
	if err != nil {
		return Outcome{}, err
	}
	if net != nil && r.helper != nil {
		net = nil
		in.WithoutNetwork()
	}
	in.OwnNames = net == nil && !in.ShareNet && r.helper == nil
	asks.reaches(net)
	root, err := session.Root(host.Lookup(b.Env, "XDG_STATE_HOME"), facts.Home)
	if err != nil {
		return Outcome{}, err
	}
	if r.DryRun {
		assignDry(r, in, root)
		if _, err := confine.New(confine.Caller{Env: b.Env, Helper: r.helper, NoSuid: r.NoSuid}, cfg, in, true); err != nil {
			return Outcome{}, err
		}
		return dryRun(in)
	}
	s, err := b.create(root, r.Name)
	if err != nil {
		hint := sessionHint(err)
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
			hint = session.RecordHint
		}
		return Outcome{}, &planner.Refusal{What: err.Error(), Hint: hint}
	}
	input.Assign(in, s.ID, s.Dir)
	left := &planted{began: time.Now().Add(-time.Second)} // the clock of files is coarser
	refused.writes = &judged{in: in, asks: asks, refused: refused}
	refused.writes.session.Witness = left
	if asks != nil {
		asks.left = left
	}
	if net != nil || r.doors.Filtered() {
		b.Early.Spread() // programs are started now that are to run like any other
	}
	net.Begin(s.Dir, in)
	defer net.Close()
	var folder child.Folder
	limited, err := confine.New(confine.Caller{Env: b.Env, Helper: r.helper, NoSuid: r.NoSuid}, cfg, in, false)
	var p *plan.Plan
	var losses []planner.Loss
	var sealed planner.Sealed
	if err == nil {
		p, losses, sealed, err = planner.BuildSealed(*in)
	}
	if err == nil {
		refused.writes.plan = p
		err = b.checkLosses(r, losses)
	}
	if err == nil {
		err = enoughFiles(p)
	}
	if err == nil && r.mode == "dynamic" && !r.Quiet {
		b.homeless(p, facts.Home)
	}
	if err == nil {
		if net == nil { // else it has written them
			folder = egress.OwnFiles(p, in)
		}
		folder.Session = s.Dir
		folder.Dirs = append(folder.Dirs, s.Layers(p)...)
	}
	if err == nil && r.Keep {
		err = s.Keep()
	}
	if err == nil {
		err = r.doors.Open(s.Dir)
		defer r.doors.Close()
	}
	remember := r.Name == "" && r.helper == nil && !r.doors.Filtered()
	var joined *netns.Network
	if err == nil {
		joined, err = net.Stage()
	}
	if err != nil {
		limited.End(child.Aftermath{})
		s.Discard()
		if err = b.instead(r, launch.Unavailable(err)); err == nil {
			return b.run(r)
		}
		return Outcome{}, err
	}
	svc := b.newService(r, in, s, refused)
	svc.meter, limited.Plan = confine.NewMeter(limited, svc.init, r.Rules), p
	asks.serve(svc)
	backend := b.backend(r)
	log := newStaticLog(&asking{b: b, r: r, cfg: cfg, in: in}, s, asks, net)
	rec := newRecord(s, p, log != nil && !r.detached && b.Early.Ahead())
	res, err := backend.Execute(b.context(), launch.Job{Plan: p, Options: launch.Options{Stdio: b.Std, Signals: b.Signals, Timeout: r.timeout, Expiring: func() { limited.Count(svc.init()) }, Early: b.Early, Folder: folder, Remember: remember, Exits: joined == nil && !limited.Grouped() && b.Context == nil, Stays: b.Context != nil, Settled: b.settled(), Network: joined, Maps: r.doors.IDs().Maps(joined), Cgroup: limited.Descriptor(), Cloned: limited.Cloned, Join: asks.joiner(), Fuse: asks.fuse(p, b.serveGuard(in, p, asks, refused, &refused.writes.session)), Tree: refused.writes.tree, Standing: rec.standing(log, net.Standing(limited.Standing(svc.standing))), Listener: asks.listener(refused), Building: func(steps []tape.Step) error {
		b.announce(r, p, losses)
		hash, err := rec.planned(steps)
		if err == nil {
			err = asks.start(s, p, sealed, hash)
		}
		if err == nil {
			log.begin()
			err = svc.detached(s)
		}
		if err == nil {
			logs := &asking{b: b, r: r, cfg: cfg, in: in}
			if err = b.serveDoors(r, asks, logs, s, hash); err == nil {
				err = startNetwork(net, s, asks, logs, hash)
			}
		}
		return err
	}}})
	net.Close()
	refused.writes.end()
	if oerr := in.Own.Save(); oerr != nil {
		b.Warn(oerr.Error() + ": what programs made there is hidden in the next run")
	}
	if rerr := rec.end(); err == nil {
		err = rerr
	}
	svc.meter.Over.Store(true)
	reached := limited.End(res.After)
	asks.end(res.Status, reached)
	log.end(res, err == nil, refused, reached)
	svc.close(res.Status)
	if err == nil {
		svc.ended(res.Status)
	}
	if err != nil { // nothing was run
		asks.unlearned()
		s.Discard()
		if vanished(err) && r.anew < maxAnew {
			r.anew++
			return b.run(r)
		}
		if err = b.instead(r, buildError(err)); err == nil {
			return b.run(r) // anew: the plan is another one there
		}
		return b.unavailable(r, facts, cfg, err)
	}
	if res.Unwritten != nil {
		b.Warn("not all of the program's output is there: " + res.Unwritten.Error())
	}
	cerr := s.Close(r.Keep)
	if strings.HasSuffix(s.ID, "a") || strings.HasSuffix(s.ID, "b") { // now and then: it looks at every record
		control.Clean(root, control.FindRoot(host.Lookup(b.Env, "XDG_RUNTIME_DIR"), host.Lookup(b.Env, "XDG_STATE_HOME"), facts.Home), true)
	}
	if cerr != nil {
		b.Warn(cerr.Error())
	}
	if !r.Quiet {
		for _, line := range reached {
			b.Warn(line)
		}
		b.sayKept(r, s.ID, s.Dir, p)
	}
	if err := asks.learned(); err != nil {
		b.Warn(err.Error())
	}
	report := summarize(s.ID, asks, refused, left.lines(p, cfg.FS.MadeRepositories == "neutralise"), res)
	return Outcome{Result: res, Timeout: r.timeout, Report: report, Audit: r.audit}, nil
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
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EACCES) {
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

// assignDry gives it the name of one that is not made.
func assignDry(r *run, in *planner.Input, root string) {
	sid := cmp.Or(r.Name, "dry-run")
	input.Assign(in, sid, path.Join(root, sid))
}

func dryRun(in *planner.Input) (Outcome, error) {
	p, losses, err := planner.Build(*in)
	return Outcome{Plan: p, Losses: losses}, err
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
	return &planner.Refusal{What: "--strict: " + strings.Join(all, "; "), Hint: "run without --strict to accept what is lost"}
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
		if m := &p.Mounts[i]; (m.Kind == plan.Bind || m.Kind == plan.Fuse) && m.Access == plan.ReadWrite && !m.Device && m.Source == m.Target && !nested(rw, plan.Quote(m.Target)) {
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
	return b.passthrough(r, facts, cfg, "fallback_on_unavailable = "+how+", "+cfg.Origin("sandbox.fallback_on_unavailable"))
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
		return Outcome{}, &planner.Refusal{What: "writing the audit line of a run without a sandbox", Err: err, Hint: "sbx does not run anything on the host that it cannot record"}
	}
	var backend launch.Backend = launch.Passthrough{}
	res, err := backend.Execute(b.context(), launch.Job{Path: exe, Argv: r.argv, Env: b.Env, Options: launch.Options{Stdio: b.Std, Signals: b.Signals, Timeout: r.timeout, Stays: b.Context != nil}})
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
	w, err := audit.Create(path.Join(path.Dir(root), "audit"), "nosandbox-"+session.NewID(), audit.Options{Syslog: b.forward(cfg)})
	if err != nil {
		return err
	}
	if _, err := w.Append(audit.Event{Kind: "exec", Decision: "allow", Op: "exec", Path: r.argv[0], Reason: "no sandbox: " + why, UID: os.Getuid(), PID: os.Getpid()}); err != nil {
		return err
	}
	return w.Close()
}
