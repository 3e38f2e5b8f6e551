package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx/audit"
	"sbx/broker/internal/arbiter"
	"sbx/broker/internal/child"
	"sbx/broker/internal/confine"
	"sbx/broker/internal/control"
	"sbx/broker/internal/decide"
	"sbx/broker/internal/doors"
	"sbx/broker/internal/egress"
	"sbx/broker/internal/gate"
	"sbx/broker/internal/gate/notify"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/program"
	"sbx/broker/internal/prompt"
	"sbx/broker/internal/request"
	"sbx/broker/internal/rules"
	"sbx/broker/internal/session"
	"sbx/broker/plan"
)

// asking is the part of a session that asks about what is not granted. A nil one, of a static session, asks nobody.
type asking struct {
	b       *Broker
	r       *run
	cfg     request.Settings
	in      *planner.Input
	rules   *rules.Files
	mode    prompt.Mode
	refused *blocked
	left    *planted

	engine      gate.Engine
	files       *gate.Files       // nil with the notification engine
	mounts      *gate.Mounts      // nil without; it has an agent or not
	connections doors.Connections // of the notification engine
	asked       atomic.Int64      // what the notification engine was notified of
	ground      *gate.Session
	svc         *service
	log         *audit.Writer
	arb         *arbiter.Arbiter
	outlet      *egress.Network // nil without a network
	server      *control.Server

	report  report
	rest    confine.Rest
	lessons *lessons // nil without --learn

	onTerminal *onTerminal // nil: there is none, or it is not asked
}

// asking prepares what a dynamic session needs. Nothing that can wait is done here: it lies in the way of the start.
func (b *Broker) asking(r *run, cfg request.Settings, in *planner.Input) (*asking, error) {
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
	a := &asking{b: b, r: r, cfg: cfg, in: in, mode: mode, onTerminal: b.findTerminal(mode)}
	src := request.Sources(b.Env, in.Facts, cfg.Vars.Project)
	a.rules = &rules.Files{Sources: src, Settings: cfg, Extra: request.SocketRules(in), Learn: r.Learn != ""}
	a.ground = &gate.Session{In: in, Names: request.NewNameGate(in), Rules: a.rules, Warn: b.Warn,
		Opened: func(dir string) {
			if a.left != nil {
				a.left.open(dir)
			}
		}}
	if r.engine == gate.EngineFiles {
		a.files = gate.NewFileGate(a.ground)
		a.engine = a.files
	} else {
		a.mounts = gate.NewMountGate(a.ground)
		a.engine = a.mounts
	}
	a.rules.Env.NoPrompt, a.rules.Env.Unasked = prompt.Unasked(mode, a.onTerminal != nil,
		cfg.Sandbox.PromptCommand != "" || b.Answer != nil)
	return a, nil
}

// start makes record, arbiter and socket while the child builds the sandbox.
func (a *asking) start(s *session.Session, p *plan.Plan, sealed planner.Sealed, planHash string) error {
	if a == nil {
		return nil
	}
	files := make([]gate.File, len(sealed.Files))
	for i, f := range sealed.Files {
		files[i] = gate.File{Dev: f.Dev, Ino: f.Ino}
	}
	if a.b.Context == nil { // another program's memory is its own
		// The collector may still be off, and a program can ask faster than it will be on.
		debug.SetMemoryLimit(confine.MemoryLimit)
	}
	// a thread that sleeps in the kernel keeps one for up to ten milliseconds, whatever there is to do
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	a.ground.View = gate.NewView(p, sealed.Paths, files, a.ground.Names.Hides)
	var err error
	if a.log, err = a.openLog(s, planHash, time.Time{}); err != nil {
		return &planner.Refusal{What: "starting the session's audit log", Err: err, Hint: session.RecordHint}
	}
	facts := a.in.Facts
	a.arb = arbiter.New(arbiter.Options{Record: a.log, Store: a.rules.Store, Fresh: a.rules.Fresh,
		Process: program.Process, Alone: a.alone, Grace: grace,
		Prompt: prompt.Options{SID: s.ID, Home: facts.Home, Mode: a.mode, Timeout: a.cfg.Sandbox.PromptTimeout,
			MaxOpen:     a.cfg.Sandbox.Questions,
			HookCommand: a.cfg.Sandbox.PromptCommand, HookEnv: request.HookEnvironment(a.b.Env, a.cfg, a.in),
			HookFailed: a.hookFailed(), Notify: a.told, Answer: a.b.Answer}})
	a.ground.Arbiter, a.ground.Log = a.arb, a.log
	a.svc.meter.Gate = a.requests
	if a.report.home = facts.Home; a.r.Verbose && !a.r.JSON {
		a.report.live = a.b.Warn
	}
	a.arb.Observe(a.report.observe)
	if a.b.Context == nil {
		a.arb.Observe(func(arbiter.Event) { a.rest.Later() })
	}
	if a.lessons, err = a.b.lessons(a.r, a.cfg); err != nil {
		return err
	}
	if a.lessons != nil {
		a.arb.Observe(a.lessons.note)
	}
	if a.server, err = a.svc.open(control.Handlers{Pending: a.arb.Queue().Pending, Answer: a.arb.Queue().Answer,
		Revoke: a.revoked}); err != nil {
		return &planner.Refusal{What: "making the session's socket", Err: err,
			Hint: "sbx watch and sbx approve reach the session through it; run with --static to do without"}
	}
	a.askWithoutPty()
	if a.onTerminal != nil && !a.r.Quiet && launch.HasTerminal([3]*os.File{nil, nil, a.b.Std[2]}) {
		a.b.Note("sbx: true questions here begin with [" + a.onTerminal.word + "]\n")
	}
	return nil
}

// serve gives the session's service; a.start opens it.
func (a *asking) serve(svc *service) {
	svc.asks = a
	if a != nil {
		a.svc = svc
	}
}

// openLog starts the session's audit log with what this host cannot enforce; a zero begin is now. A name may have been
// used before: the old log stays as it is.
func (a *asking) openLog(s *session.Session, planHash string, begin time.Time) (*audit.Writer, error) {
	opt := audit.Options{PlanHash: planHash, MaxBytes: 16 << 20,
		Start: audit.Event{Time: begin, UID: os.Getuid(), PID: os.Getpid(), Cwd: a.in.Dir, Op: "run", Path: a.r.argv[0],
			Detail: []audit.KV{{K: "profile", V: a.r.profile}, {K: "mode", V: a.r.mode}, {K: "prompt", V: string(a.mode)}}}}
	opt.Syslog = a.b.forward(a.cfg)
	dir := path.Join(path.Dir(path.Dir(s.Dir)), "audit")
	w, err := audit.Create(dir, s.ID, opt)
	if errors.Is(err, unix.EEXIST) && len(s.ID) < 57 {
		w, err = audit.Create(dir, s.ID+"-"+session.NewID(), opt)
	}
	if err != nil {
		return nil, err
	}
	a.r.audit = w.Path()
	for _, l := range a.r.losses {
		if _, err := w.Note(audit.Event{Kind: audit.KindLoss, UID: os.Getuid(), Reason: l.String()}); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// listener is who answers the sandbox's system-call filter.
func (a *asking) listener(refused *blocked) func(*os.File) {
	if a == nil {
		return refused.listen
	}
	a.refused = refused
	if a.files != nil {
		return refused.listen
	}
	return a.listen
}

// listen runs the notification engine until the sandbox has ended.
func (a *asking) listen(f *os.File) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := gate.Notify{Listener: f, View: a.ground.View, Ask: a.arb.Ask, Log: a.note, Taken: &a.asked,
		Connect: a.connections.Connect}
	a.mounts.Join(&n)
	if a.refused.writes.any() {
		var err error
		if n.Carrier, err = a.refused.writes.carrier(true); err != nil {
			a.b.Warn(err.Error())
		}
	}
	_ = gate.ServeNotify(ctx, n)
}

// requests is how often the kernel has asked the gate. What is granted costs none in a root that sbx serves.
func (a *asking) requests() int64 {
	if a.files != nil {
		return a.files.Requests()
	}
	return a.asked.Load()
}

// note takes in what the engine refused without a question.
func (a *asking) note(n notify.Note) {
	if n.Path == "" {
		a.refused.note(notify.Denial{PID: n.PID, Call: n.Op})
		return
	}
	q := gate.FromNotify(notify.Ask{PID: n.PID, Op: n.Op, Path: n.Path})
	q.Exe, q.Cwd = program.Links(int(n.PID))
	v := decide.Verdict{Errno: int(n.Errno), Reason: n.Why}
	if n.Errno == unix.ENOENT {
		var st unix.Stat_t
		if unix.Lstat(n.Path, &st) != unix.ENOENT { // what is not there was kept from nobody
			a.ground.Hidden(q, v)
		}
		return
	}
	a.arb.Refused(q, v)
}

// ask settles an access that comes from no engine.
func (a *asking) ask(q decide.Ask) bool {
	return a.arb.Ask(context.Background(), q).Decision == decide.Allow
}

// grace is how long the first question of a session waits for somebody to come where nobody is.
const grace = 3 * time.Second

// alone says whether nobody could answer: no terminal, no command that is asked, and nobody who ever looked through the
// socket a short while ago.
func (a *asking) alone() bool {
	if a.mode != prompt.Auto || a.onTerminal.shows() || a.cfg.Sandbox.PromptCommand != "" || a.b.Answer != nil {
		return false
	}
	return a.server == nil || !a.server.Attended(a.cfg.Sandbox.PromptTimeout)
}

// hookFailed says once what was wrong with what the prompt command answered: all that it is asked is refused.
func (a *asking) hookFailed() func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			a.b.Warn(err.Error() + "; it counts as no (an answer is: allow or deny, once, file, dir or tree, and how long)")
		})
	}
}

// told passes what happens in the queue on to the socket, and to the terminal or log that the command was started from.
func (a *asking) told(ev prompt.Event) {
	if a.svc.meter != nil {
		a.svc.meter.Told(ev)
	}
	if a.server != nil {
		a.server.Notify(ev)
	}
	if a.r.Quiet || a.onTerminal.shows() {
		return
	}
	switch ev.Kind {
	case prompt.Asked:
		st := prompt.Style{Home: a.in.Facts.Home, Width: 1 << 12}
		id := ev.Question.ID[:8]
		a.say(st.Wants(ev.Question) + ": sbx approve " + id + " or sbx deny " + id)
	case prompt.Notice:
		a.say(ev.Text)
	}
}

// say prints a line while the program may have the terminal in raw mode.
func (a *asking) say(text string) {
	end := "\n"
	if a.in.TTY {
		end = "\r\n"
	}
	a.b.Note("sbx: " + text + end)
}

// end settles what waits, tells the clients and seals the record.
func (a *asking) end(status int, reached []string) {
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
	a.onTerminal.close()
	a.svc.close(status)
	_, err := a.log.Note(audit.Event{Kind: audit.KindExit, UID: os.Getuid(), Reason: strings.Join(reached, "; "),
		Detail: []audit.KV{{K: "status", V: strconv.Itoa(status)}}})
	if cerr := a.log.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		a.b.Warn(fmt.Sprintf("sealing the audit log: %v", err))
	}
}

// fuse returns who serves the FUSE file systems of a plan: the gate its root, guard the projects.
func (a *asking) fuse(p *plan.Plan, guard func(*child.Child, *plan.Mount, int) error) func(*child.Child, *plan.Mount,
	int) error {
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

// grounds are those of the engine with an agent; nil if there is none.
func (a *asking) grounds() *gate.Grounds {
	switch {
	case a == nil:
	case a.files != nil:
		return a.files.Grounds
	case a.mounts != nil && a.mounts.Able():
		return a.mounts.Grounds
	}
	return nil
}

// standing is called when the sandbox stands.
func (a *asking) standing(c *child.Child, p *plan.Plan) {
	if a != nil {
		a.engine.Standing(c, p)
	}
}
