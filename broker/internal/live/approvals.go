//go:build linux

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/confine"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/credential"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/doors"
	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/learner"
	"sbx.example/sbx/broker/internal/mediator"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/rules"
	"sbx.example/sbx/broker/plan"
)

// approvals are the part of a session that asks about what is not granted: engine, rules, arbiter, record and socket.
// Nil ones, of a static session, ask nobody.
type approvals struct {
	b        *Broker
	r        *run
	cfg      request.Settings
	in       *planner.Input
	rules    *rules.Files
	mode     prompt.Mode
	mediator *mediator.Mediator

	engine      gate.Engine
	files       *gate.Files       // nil with the notification engine
	mounts      *gate.Mounts      // nil without; it has an agent or not
	connections doors.Connections // of the notification engine
	asked       atomic.Int64      // what the notification engine was notified of
	gated       *gate.Session
	svc         *service
	log         *audit.Writer
	arb         *arbiter.Arbiter
	network     *egress.Network // nil without a network
	server      *control.Server
	credentials *credential.Grants // where each request is decided about

	report  report.Accesses
	rest    confine.Rest
	learner *learner.Learner // nil without --learn

	terminal *terminalPrompt // nil: there is none, or it is not asked
	teller   teller          // of what happens in the queue
}

// newApprovals prepares what a dynamic session needs. Nothing that can wait is done here: it lies in the way of the
// start.
func (b *Broker) newApprovals(r *run, cfg request.Settings, in *planner.Input) (*approvals, error) {
	if r.mode != "dynamic" && r.Learn != "" {
		return nil, &planner.Refusal{What: "--learn needs dynamic mode, which this host or its configuration does not give"}
	}
	if r.mode != "dynamic" {
		return nil, nil
	}
	if cfg.Sandbox.Gate == gate.EngineFiles && r.engine != gate.EngineFiles {
		return nil, &planner.Refusal{What: "sandbox.gate = gatefs (" + cfg.Origin("sandbox.gate") +
			") is not to be had: a root cannot be served through FUSE", Hint: "sbx doctor says what this host offers"}
	}
	mode, err := prompt.ParseMode(cfg.Sandbox.Prompt)
	if err != nil {
		return nil, err
	}
	a := &approvals{b: b, r: r, cfg: cfg, in: in, mode: mode, terminal: b.findTerminal(mode)}
	src := request.Sources(b.Env, in.Facts, cfg.Vars.Project)
	a.rules = &rules.Files{Sources: src, Settings: cfg, Extra: request.SocketRules(in), Learn: r.Learn != ""}
	a.gated = &gate.Session{In: in, Names: request.NewNameGate(in), Rules: a.rules, Warn: b.Warn,
		Opened: func(dir string, judge *guard.Judge) {
			if a.mediator != nil {
				a.mediator.Left.Open(dir, judge)
			}
		},
		Shown: func(dir string) {
			if a.mediator != nil {
				a.mediator.Shown(dir)
			}
		}}
	if r.engine == gate.EngineFiles {
		a.files = gate.NewFileGate(a.gated)
		a.engine = a.files
	} else {
		a.mounts = gate.NewMountGate(a.gated)
		a.engine = a.mounts
	}
	a.rules.Env.Runs = request.Runs(in)
	a.rules.Env.Acts = (&planner.Input{FS: host.NewCache(in.Facts.Foreign), Facts: in.Facts}).Acts(in.Outside)
	a.rules.Env.Bases = decide.Bases(cfg.Vars)
	a.rules.Labels = labels(cfg, in)
	if cfg.Agent != nil {
		a.rules.Env.Login = &decide.Login{Patterns: cfg.Agent.Login, Agent: cfg.Agent.Name, Own: cfg.Agent.Own(in)}
		a.rules.Env.Unread = cfg.Unread()
	}
	a.rules.Env.NoPrompt, a.rules.Env.Unasked = prompt.Unasked(mode, a.terminal != nil,
		cfg.Sandbox.PromptCommand != "" || b.Answer != nil)
	return a, nil
}

// start makes record, arbiter and socket while the child builds the sandbox.
func (a *approvals) start(log *auditLog, p *plan.Plan, sealed planner.Sealed, planHash string) error {
	if a == nil {
		return nil
	}
	if a.b.Context == nil { // another program's memory is its own
		// The collector may still be off, and a program can ask faster than it will be on.
		debug.SetMemoryLimit(confine.MemoryLimit)
	}
	// a thread that sleeps in the kernel keeps one for up to ten milliseconds, whatever there is to do
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	a.gated.View = gate.NewView(p, sealed.Paths, sealed.Files, a.gated.Names.Hides)
	a.gated.View.Reveal(a.in.Reveals)
	a.rules.Env.Files = request.WritableFiles(a.in, p)
	var err error
	log.mode = a.mode
	if err = log.open(planHash); err != nil {
		return err
	}
	a.log = log.w
	facts := a.in.Facts
	a.arb = arbiter.New(a.arbitrated(a.log, log.s.ID))
	a.gated.Arbiter, a.gated.Log = a.arb, a.log
	a.svc.meter.Gate = a.requests
	if a.report.Home = facts.Home; a.r.Verbose && !a.r.JSON {
		a.report.Live = a.b.Warn
	}
	a.report.Alone = a.svc.programs.attribute
	a.arb.Observe(a.report.Observe)
	if a.b.Context == nil {
		a.arb.Observe(func(arbiter.Event) { a.rest.Later() })
	}
	if a.learner, err = learner.New(a.r.Learn, a.cfg); err != nil {
		return err
	}
	if a.learner != nil {
		a.arb.Observe(a.learner.Note)
	}
	if a.server, err = a.svc.open(control.Handlers{Pending: a.arb.Queue().Pending, Answer: a.arb.Queue().Answer,
		Undo: a.arb.Queue().UndoAnswer, Revoke: a.revoke, Reveal: a.reveal}); err != nil {
		return &planner.Refusal{What: "making the session's socket", Err: err,
			Hint: "sbx watch and sbx approve reach the session through it; run with --static to do without"}
	}
	a.askWithoutPty()
	if a.terminal != nil && !a.r.Quiet && launch.HasTerminal([3]*os.File{nil, nil, a.b.Std[2]}) {
		a.b.Note("sbx: true questions here begin with [" + a.terminal.word + "]\n")
	}
	return nil
}

// arbitrated are the options of the session's arbiter.
func (a *approvals) arbitrated(record arbiter.Recorder, sid string) arbiter.Options {
	a.teller.print = func(line string) { a.b.say(a.in.TTY, line) }
	return arbiter.Options{Record: record, Store: a.rules.Store, Unstore: a.rules.Unstore,
		Undone: a.undone, Fresh: a.rules.Fresh, Contact: a.contacts, Labelled: a.labelled,
		Process: program.Process, Alone: a.unattended, Grace: a.grace(),
		Prompt: prompt.Options{SID: sid, Home: a.in.Facts.Home, Mode: a.mode, Timeout: a.cfg.Sandbox.PromptTimeout,
			MaxOpen:     a.cfg.Sandbox.Questions,
			HookCommand: a.cfg.Sandbox.PromptCommand, HookEnv: request.HookEnvironment(a.b.Env, a.cfg),
			HookFailed: a.hookFailed(), Notify: a.notify, Answer: a.b.Answer}}
}

// serve gives the session's service; a.start opens it.
func (a *approvals) serve(svc *service) {
	svc.approvals = a
	if a != nil {
		a.svc = svc
	}
}

// listener is who answers the sandbox's system-call filter.
func (a *approvals) listener(m *mediator.Mediator) func(*os.File) {
	if a == nil || a.files != nil {
		return m.Listen
	}
	return a.listen
}

// listen runs the notification engine until the sandbox has ended.
func (a *approvals) listen(f *os.File) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := gate.Notify{Listener: f, View: a.gated.View, Ask: a.arb.Ask, Log: a.note, Taken: &a.asked,
		Connect: a.connections.Connect, Config: a.gated.Names.Config}
	a.mounts.Join(&n)
	if a.mediator.Any() {
		var err error
		if n.Carrier, err = a.mediator.Carrier(true); err != nil {
			a.b.Warn(err.Error())
		}
	}
	_ = gate.ServeNotify(ctx, n)
}

// requests is how often the kernel has asked the gate. What is granted costs none in a root that sbx serves.
func (a *approvals) requests() int64 {
	if a.files != nil {
		return a.files.Requests()
	}
	return a.asked.Load()
}

// note takes in what the engine refused without a question.
func (a *approvals) note(n notify.Note) {
	if n.Path == "" {
		a.mediator.Denied(notify.Denial{PID: n.PID, Call: n.Op})
		return
	}
	q := gate.FromNotify(notify.Ask{PID: n.PID, Op: n.Op, Path: n.Path})
	q.Exe, q.Cwd = program.Links(int(n.PID))
	v := decide.Verdict{Errno: int(n.Errno), Reason: n.Why}
	if n.Errno == unix.ENOENT {
		var st unix.Stat_t
		if unix.Lstat(n.Path, &st) != unix.ENOENT { // what is not there was kept from nobody
			a.gated.Hidden(q, v)
		}
		return
	}
	a.arb.Refused(q, v)
}

// ask settles an access that comes from no engine.
func (a *approvals) ask(ctx context.Context, q decide.Ask) bool {
	return a.arb.Ask(ctx, q).Decision == decide.Allow
}

// unattended says whether nobody could answer: no terminal, no command that is asked, and nobody who ever looked
// through the socket a short while ago.
func (a *approvals) unattended() bool {
	if a.mode != prompt.Auto || a.terminal.shows() || a.cfg.Sandbox.PromptCommand != "" || a.b.Answer != nil {
		return false
	}
	return a.server == nil || !a.server.Attended(a.cfg.Sandbox.PromptTimeout)
}

// hookFailed says once what was wrong with what the prompt command answered: all that it is asked is refused.
func (a *approvals) hookFailed() func(error) {
	var once sync.Once
	const no = "; it counts as no (an answer is: allow or deny, once, file, dir, tree or app, and how long)"
	return func(err error) { once.Do(func() { a.b.Warn(err.Error() + no) }) }
}

// notify passes what happens in the queue on to the socket, and to the terminal or log that the command was started
// from. The queue is locked, so it waits for nobody.
func (a *approvals) notify(ev prompt.Event) {
	if a.svc.meter != nil {
		a.svc.meter.Count(ev)
	}
	if a.server != nil {
		a.server.Notify(ev)
	}
	if a.r.Quiet || a.terminal.shows() {
		return
	}
	switch ev.Kind {
	case prompt.Asked:
		st := prompt.Style{Home: a.in.Facts.Home}
		a.teller.say(st.Whole(ev.Question) + ": " + a.toAnswer(ev.Question.ID[:8]))
	case prompt.Notice:
		a.teller.say(ev.Text)
	}
}

// end settles what waits, tells the clients and seals the record.
func (a *approvals) end(res launch.Result, reached []string, left func() []string) {
	if a == nil {
		return
	}
	a.engine.End()
	if a.log == nil {
		return
	}
	if a.arb != nil {
		a.arb.Close()
	}
	a.terminal.close()
	a.svc.close(res.Status)
	defer a.teller.end() // the record is sealed, whoever reads
	err := noteLeft(a.log, left())
	_, nerr := a.log.Note(exited(res, reached))
	if err = cmp.Or(err, nerr, a.log.Close()); err != nil {
		a.b.Warn(fmt.Sprintf("sealing the audit log: %v", err))
	}
}

// writeLearned writes the policy of a run with --learn.
func (a *approvals) writeLearned() error {
	if a == nil {
		return nil
	}
	said, err := a.learner.Finish(a.r.argv, a.cfg.Vars)
	for _, line := range said {
		if !a.r.Quiet {
			a.b.Warn(line)
		}
	}
	return err
}

// discardLearned is writeLearned where nothing was run.
func (a *approvals) discardLearned() {
	if a != nil {
		a.learner.Drop()
	}
}

// fuseServer serves a FUSE file system of a plan, as launch.Options.Fuse does.
type fuseServer = func(c *child.Child, m *plan.Mount, fd int) error

// fuse returns who serves the FUSE file systems of a plan: the gate its root, guard the projects.
func (a *approvals) fuse(p *plan.Plan, guard fuseServer) fuseServer {
	if a == nil || a.files == nil {
		return guard
	}
	return func(c *child.Child, m *plan.Mount, fd int) error {
		if m.Target == "/" {
			return a.files.Serve(p, fd, c)
		}
		return guard(c, m, fd)
	}
}

// mediates makes the session's mediator; a is nil where nobody is asked.
func (a *approvals) mediates(in *planner.Input, refused *report.Refusals, warn func(string)) *mediator.Mediator {
	if a == nil {
		return mediator.New(in, nil, refused, warn)
	}
	a.mediator = mediator.New(in, a, refused, warn)
	if a.files != nil {
		a.gated.Notifying = a.mediator.Serves("/")
	}
	return a.mediator
}

// Decides is mediator.Asker's: before the arbiter is there nothing has been asked.
func (a *approvals) Decides() bool { return a.arb != nil }

// Refused is mediator.Asker's.
func (a *approvals) Refused(q decide.Ask, v decide.Verdict) { a.arb.Refused(q, v) }

// Hidden is mediator.Asker's.
func (a *approvals) Hidden(q decide.Ask, v decide.Verdict) { a.gated.Hidden(q, v) }

// Unmounting is mediator.Asker's.
func (a *approvals) Unmounting() func(string) func() {
	if a.files == nil {
		return nil
	}
	return a.files.Unmounting
}

// Mounter is mediator.Asker's.
func (a *approvals) Mounter() func() (*agent.Agent, error) {
	switch {
	case a.files != nil:
		return a.files.Grounds.Mounter
	case a.mounts != nil && a.mounts.Able():
		return a.mounts.Grounds.Mounter
	}
	return nil
}

// standing is called when the sandbox stands.
func (a *approvals) standing(c *child.Child, p *plan.Plan) {
	if a != nil {
		a.engine.Standing(c, p)
	}
}

// revoke is what a session's socket does when it is told to forget.
func (a *approvals) revoke(kind, name string) (int, error) {
	switch k := policy.Kind(kind); k {
	case decide.KindEverything:
		return a.arb.Revoke(k, name), nil
	case policy.KindPath, policy.KindSocket, policy.KindHost:
		n := a.arb.Revoke(k, name)
		if a.network != nil && k == policy.KindHost {
			a.network.Forget(name)
		}
		if k == policy.KindHost {
			return n, nil
		}
		return n, a.engine.Forget(name)
	}
	return 0, errors.New("answers are about a path, socket, host or everything")
}

// reveal is what a session's socket does when it is told to show a secret.
func (a *approvals) reveal(p string, ans prompt.Answer) error {
	if !slices.Contains(a.in.Reveals, p) {
		return errors.New("this session was not started to show it: fs.reveal, set before the start, has it asked about")
	}
	ans.Scope = decide.Revealed
	return a.arb.Reveal(p, ans)
}

// undone takes back what an answer had opened, when it was taken back itself.
func (a *approvals) undone(c decide.Consent) error {
	for _, g := range c.Covers {
		switch {
		case g.Scope == decide.Program || g.Scope == decide.Everything:
		case g.Kind == policy.KindHost:
			if a.network != nil {
				a.network.Forget(g.Name)
			}
		default:
			if err := a.engine.Forget(g.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
