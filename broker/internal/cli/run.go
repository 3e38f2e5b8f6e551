package cli

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
	"sbx/broker/internal/command"
	"sbx/broker/internal/confine"
	"sbx/broker/internal/egress"
	"sbx/broker/internal/gate"
	"sbx/broker/internal/host"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/netns"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
	"sbx/broker/internal/session"
	"sbx/broker/internal/steps"
	"sbx/shared/plan"
	"sbx/shared/tape"
	"sbx/shared/wire"
)

func (t *term) runCommand() command.Row {
	return command.Row{Command: request.Row(), Begin: func(args []string) ([]option.Option, func([]string) int) {
		r := &request.Request{}
		return r.Options(), func(words []string) int { return t.runNew(r, words, args) }
	}}
}

// runNew runs argv in a new sandbox. args is the line as it was typed.
func (t *term) runNew(r *request.Request, argv, args []string) int {
	r.Argv = argv
	if err := r.OnlyStatic(); err != nil {
		return t.fail(err)
	}
	if r.Detach && !r.DryRun {
		return t.detach(r, args)
	}
	return t.runArgv(*r)
}

// runArgv runs the request's program, or a shell.
func (t *term) runArgv(q request.Request) int {
	q.ForLearning()
	r := newRun(q)
	if len(r.argv) == 0 {
		shell := host.Lookup(t.Env, "SHELL")
		if shell == "" {
			shell = "/bin/sh"
		}
		r.argv = []string{shell}
	}
	return t.run(r)
}

// run does what the request asks for and returns the exit status.
func (t *term) run(r *run) int {
	// Nobody of the same user can read this process's memory or attach to it from here on.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return t.fail(fmt.Errorf("making the broker undumpable: %w", err))
	}
	again := r.helper != nil
	t.helperAtOnce(r)
	if !r.DryRun {
		r.helper.Begin() // it starts while the plan is made
		defer r.helper.End()
	}
	facts := host.Read(t.Env)
	facts.Fuse = facts.Fuse && r.helper == nil && !r.noFuse // the helper mounts no file server
	t.recordInside(facts)
	if r.Workdir == "" && (facts.Cwd == "" || unix.Access(".", unix.R_OK|unix.X_OK) != nil) {
		return t.fail(&planner.Refusal{What: "the working directory does not exist any more or cannot be read", Hint: "cd into a directory, or pass --workdir DIR"})
	}
	cfg, err := r.Request.Settings(t.Env, facts, r.Request.ProjectRoot(facts))
	if err != nil {
		return t.fail(inSandbox(err))
	}
	if !r.Quiet && !again {
		t.Notices(cfg.Notices)
	}
	if !cfg.Sandbox.Enabled {
		return t.passthrough(r, facts, cfg, cfg.Origin("sandbox.enabled"))
	}
	if r.timeout == 0 {
		r.timeout = cfg.Sandbox.Timeout
	}
	r.strict = r.strict || cfg.Sandbox.Strict
	r.profile, r.mode = cfg.Profile.Name, cfg.Mode(facts)
	r.engine = gate.Choose(r.mode, cfg, facts)
	in, open, err := t.asked(r).Make(cfg, facts)
	if err != nil {
		return t.fail(err)
	}
	r.doors = open
	asks, err := t.asking(r, cfg, in)
	if err != nil {
		return t.fail(err)
	}
	refused := &blocked{verb: r.Verbose, print: t.warn}
	net, err := t.network(r, cfg, in, refused)
	if err != nil {
		return t.fail(err)
	}
	if net != nil && r.helper != nil {
		net = nil
		in.WithoutNetwork()
	}
	in.OwnNames = net == nil && !in.ShareNet && r.helper == nil
	asks.reaches(net)
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), facts.Home)
	if err != nil {
		return t.fail(err)
	}
	if r.DryRun {
		assignDry(r, in, root)
		if _, err := confine.New(confine.Caller{Env: t.Env, Helper: r.helper, NoSuid: r.NoSuid}, cfg, in, true); err != nil {
			return t.fail(err)
		}
		return t.dryRun(r, in, root)
	}
	s, err := t.create(root, r.Name)
	if err != nil {
		hint := sessionHint(err)
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
			hint = session.RecordHint
		}
		return t.fail(&planner.Refusal{What: err.Error(), Hint: hint})
	}
	assign(in, s.ID, s.Dir)
	left := &planted{began: time.Now().Add(-time.Second)} // the clock of files is coarser
	refused.writes = &judged{in: in, asks: asks, refused: refused}
	refused.writes.session.Witness = left
	if asks != nil {
		asks.left = left
	}
	if net != nil || r.doors.Filtered() {
		t.early.Spread() // programs are started now that are to run like any other
	}
	net.Begin(s.Dir, in)
	defer net.Close()
	var folder child.Folder
	limited, err := confine.New(confine.Caller{Env: t.Env, Helper: r.helper, NoSuid: r.NoSuid}, cfg, in, false)
	var p *plan.Plan
	var losses []planner.Loss
	var sealed planner.Sealed
	if err == nil {
		p, losses, sealed, err = planner.BuildSealed(*in)
	}
	if err == nil {
		refused.writes.plan = p
		err = t.checkLosses(r, losses)
	}
	if err == nil {
		err = enoughFiles(p)
	}
	if err == nil && r.mode == "dynamic" && !r.Quiet {
		t.homeless(p, facts.Home)
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
		if err = t.instead(r, launch.Unavailable(err)); err == nil {
			return t.run(r)
		}
		return t.fail(err)
	}
	svc := t.newService(r, in, s, refused)
	svc.meter, limited.Plan = confine.NewMeter(limited, svc.init, r.Rules), p
	asks.serve(svc)
	backend := t.backend(r)
	log := newStaticLog(&asking{t: t, r: r, cfg: cfg, in: in}, s, asks, net)
	rec := newRecord(s, p, log != nil && !r.detached && t.early.Ahead())
	res, err := backend.Execute(t.context(), launch.Job{Plan: p, Options: launch.Options{Stdio: t.Std, Signals: t.signals, Timeout: r.timeout, Expiring: func() { limited.Count(svc.init()) }, Early: t.early, Folder: folder, Remember: remember, Exits: joined == nil && !limited.Grouped() && t.host == nil, Stays: t.host != nil, Settled: t.settled(), Network: joined, Maps: r.doors.IDs().Maps(joined), Cgroup: limited.Descriptor(), Cloned: limited.Cloned, Join: asks.joiner(), Fuse: asks.fuse(p, t.serveGuard(in, p, asks, refused, &refused.writes.session)), Tree: refused.writes.tree, Standing: rec.standing(log, net.Standing(limited.Standing(svc.standing))), Listener: asks.listener(refused), Building: func(steps []tape.Step) error {
		t.announce(r, p, losses)
		hash, err := rec.planned(steps)
		if err == nil {
			err = asks.start(s, p, sealed, hash)
		}
		if err == nil {
			log.begin()
			err = svc.detached(s)
		}
		if err == nil {
			logs := &asking{t: t, r: r, cfg: cfg, in: in}
			if err = t.serveDoors(r, asks, logs, s, hash); err == nil {
				err = startNetwork(net, s, asks, logs, hash)
			}
		}
		return err
	}}})
	net.Close()
	refused.writes.end()
	if oerr := in.Own.Save(); oerr != nil {
		t.warn(oerr.Error() + ": what programs made there is hidden in the next run")
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
			return t.run(r)
		}
		if err = t.instead(r, buildError(err)); err == nil {
			return t.run(r) // anew: the plan is another one there
		}
		return t.unavailable(r, facts, cfg, err)
	}
	t.result = res
	if res.Unwritten != nil {
		t.warn("not all of the program's output is there: " + res.Unwritten.Error())
	}
	cerr := s.Close(r.Keep)
	if strings.HasSuffix(s.ID, "a") || strings.HasSuffix(s.ID, "b") { // now and then: it looks at every record
		t.Clean(root, true)
	}
	if cerr != nil {
		t.warn(cerr.Error())
	}
	if !r.Quiet {
		for _, line := range reached {
			t.warn(line)
		}
		t.sayKept(r, s.ID, s.Dir, p)
	}
	if err := asks.learned(); err != nil {
		t.warn(err.Error())
	}
	t.summarize(r, s.ID, asks, refused, left.lines(p, cfg.FS.MadeRepositories == "neutralise"), res)
	if res.TimedOut && !r.Quiet {
		t.warn(fmt.Sprintf("timed out after %v: everything in the sandbox was ended", r.timeout))
	}
	return res.Status
}

// create makes the session's folder, or takes the one that process 1 sets up already.
func (t *term) create(root, name string) (*session.Session, error) {
	if dir := t.early.TakeSession(); dir != "" {
		if name == "" && path.Dir(dir) == root {
			if s, err := session.Adopt(dir); s != nil || err != nil {
				return s, err
			}
		}
		t.early.Discard()
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
	var refused *wire.Refusal // the helper has no part in the session's folder
	if hint := sessionHint(err); hint != "" && f == nil && !errors.As(err, &exec) && !errors.As(err, &refused) {
		return &planner.Refusal{What: "building sandbox", Err: err, Hint: hint}
	}
	return err
}

// assign gives the input its session.
func assign(in *planner.Input, sid, dir string) {
	in.Session, in.SessionDir = sid, dir
	if in.Hostname == "" {
		in.Hostname = "sbx-" + sid
	}
}

// assignDry gives it the name of one that is not made.
func assignDry(r *run, in *planner.Input, root string) {
	sid := cmp.Or(r.Name, "dry-run")
	assign(in, sid, path.Join(root, sid))
}

func (t *term) dryRun(r *run, in *planner.Input, root string) int {
	p, losses, err := planner.Build(*in)
	if err != nil {
		return t.fail(err)
	}
	if r.JSON {
		t.print(dryRunJSON(p, losses))
		return 0
	}
	t.print(p.Text())
	for _, l := range losses {
		t.print("loss       " + l.String() + "\n")
	}
	return 0
}

// checkLosses makes every loss an error under --strict, but for the price of a switch.
func (t *term) checkLosses(r *run, losses []planner.Loss) error {
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
func (t *term) announce(r *run, p *plan.Plan, losses []planner.Loss) {
	if r.Quiet {
		return
	}
	for _, l := range losses {
		t.warn(l.String())
	}
	if r.Verbose {
		t.note(p.Text())
	} else if launch.HasTerminal([3]*os.File{nil, nil, t.Std[2]}) {
		t.note(statusLine(r, p))
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
		if m := &p.Mounts[i]; (m.Kind == plan.Bind || m.Kind == plan.Fuse) && m.Access == plan.ReadWrite && !m.Device && m.Source == m.Target && !nested(rw, m.Target.Quote()) {
			rw = append(rw, m.Target.Quote())
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
func (t *term) unavailable(r *run, facts host.Facts, cfg request.Settings, err error) int {
	err = inSandbox(err)
	how := cfg.Sandbox.FallbackOnUnavailable
	if how == "block" || how == "" || !errors.Is(err, launch.ErrUnavailable) {
		return t.fail(err)
	}
	t.warn(err.Error())
	return t.passthrough(r, facts, cfg, "fallback_on_unavailable = "+how+", "+cfg.Origin("sandbox.fallback_on_unavailable"))
}

// passthrough runs the command on the host: the off switch, never a fallback that nobody sees.
func (t *term) passthrough(r *run, facts host.Facts, cfg request.Settings, why string) int {
	t.early.End()
	t.warn("NO SANDBOX (" + why + "): " + plan.Bytes(r.argv[0]).Quote() + " runs on the host with all of your rights")
	in := &planner.Input{Argv: r.argv, Env: t.Env, FS: host.FS{}}
	exe, err := planner.LookPath(in, facts.Cwd)
	if err != nil {
		return t.fail(err)
	}
	if err := t.auditUnsandboxed(r, facts, cfg, why); err != nil {
		return t.fail(&planner.Refusal{What: "writing the audit line of a run without a sandbox", Err: err, Hint: "sbx does not run anything on the host that it cannot record"})
	}
	var backend launch.Backend = launch.Passthrough{}
	res, err := backend.Execute(t.context(), launch.Job{Path: exe, Argv: r.argv, Env: t.Env, Options: launch.Options{Stdio: t.Std, Signals: t.signals, Timeout: r.timeout, Stays: t.host != nil}})
	if err != nil {
		return t.fail(err)
	}
	return res.Status
}

// auditUnsandboxed writes down that something runs on the host.
func (t *term) auditUnsandboxed(r *run, facts host.Facts, cfg request.Settings, why string) error {
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), facts.Home)
	if err != nil {
		return err
	}
	w, err := audit.Create(path.Join(path.Dir(root), "audit"), "nosandbox-"+session.NewID(), audit.Options{Syslog: t.forward(cfg)})
	if err != nil {
		return err
	}
	if _, err := w.Append(audit.Event{Kind: "exec", Decision: "allow", Op: "exec", Path: r.argv[0], Reason: "no sandbox: " + why, UID: os.Getuid(), PID: os.Getpid()}); err != nil {
		return err
	}
	return w.Close()
}
