//go:build linux

package live

import (
	"cmp"
	"errors"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/caches"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/confine"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/credential"
	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/mediator"
	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/placeholders"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/internal/tools"
	"sbx.example/sbx/broker/plan"
)

// attempt is one way through a run. Its methods are called in the order in which they stand here.
type attempt struct {
	b *Broker
	r *run

	// of configure
	facts host.Facts
	cfg   request.Settings

	// of ask: what is wanted, and who is asked about the rest
	in          *planner.Input
	approvals   *approvals // nil: nobody
	refusals    *report.Refusals
	net         *egress.Network    // nil: none
	credentials *credential.Grants // nil: none
	nowhere     *egress.Nowhere    // answers about names where there is none
	root        string             // of the sessions
	kept        *caches.Project    // what its earlier sessions left in caches

	// of open
	s        *session.Session
	mediator *mediator.Mediator // of what changes guarded trees, and what is left of it
	emptied  placeholders.Set

	// of prepare: what is built
	began   time.Time // what was written before is older
	limited *confine.Confined
	plan    *plan.Plan
	losses  []planner.Loss
	sealed  planner.Sealed
	folder  child.Folder
	joined  *netns.Network

	// of execute
	svc   *service
	audit *auditLog
	log   *staticLog
	left  func() []string // what the session left that somebody may run outside; looked for once, when it has ended
	rec   *record
	tools *tools.Calls // nil: none

	decoys atomic.Pointer[decoys] // nil: none
}

// configure reads what the host offers and what the settings say.
func (x *attempt) configure(again bool) error {
	b, r := x.b, x.r
	b.Env = host.WithState(b.Env)
	x.facts = host.Read(b.Env)
	if r.Workdir == "" && (x.facts.Cwd == "" || unix.Access(".", unix.R_OK|unix.X_OK) != nil) {
		return &planner.Refusal{What: "the working directory does not exist any more or cannot be read",
			Hint: "cd into a directory, or pass --workdir DIR"}
	}
	if x.facts.Reported { // before it fails at something else
		if err := sealedIn(); err != nil {
			return err
		}
	}
	read := func() (err error) {
		x.cfg, err = r.Request.Settings(b.Env, x.facts, r.ProjectRoot(x.facts))
		return inSandbox(err)
	}
	if err := read(); err != nil {
		return err
	}
	if a := x.cfg.Agent; a != nil && len(a.Asks) > 0 && b.Login != nil && !again && !r.DryRun &&
		b.Login(&r.Request, x.cfg) {
		if err := read(); err != nil {
			return err
		}
	}
	if !r.Quiet && !again {
		b.Notices(x.notices())
	}
	if err := x.choose(); err != nil {
		return err
	}
	// the helper mounts no file server
	x.facts.Fuse = x.facts.Fuse && r.helper == nil && !r.inPlace && !r.noFuse
	return nil
}

// notices are what a person was not told of the files before. Who reads a terminal is told with them.
func (x *attempt) notices() []policy.Notice {
	src := request.Sources(x.b.Env, x.facts, x.r.ProjectRoot(x.facts))
	return x.cfg.Layers.Untold(src, x.cfg.Notices, !x.r.DryRun && launch.IsTerminal(x.b.Std[2]))
}

// ask makes the planner's input, and what the session asks and reaches. Nothing is made on the host.
func (x *attempt) ask() (err error) {
	b, r := x.b, x.r
	if r.timeout == 0 {
		r.timeout = x.cfg.Sandbox.Timeout
	}
	if r.timeout > 0 && b.Until != nil {
		b.Until(time.Now().Add(r.timeout))
	}
	r.strict = r.strict || x.cfg.Sandbox.Strict
	r.profile, r.mode = x.cfg.Profile.Name, x.cfg.Mode(x.facts)
	if r.inPlace && r.mode == "dynamic" {
		r.mode, r.asks = "static", true
	}
	if x.cfg.Agent != nil {
		r.agent, r.unkept = x.cfg.Agent.Origin(), x.cfg.Agent.Unkept
		if !r.DryRun {
			x.cfg.Agent.MakeState()
		}
	}
	if !r.DryRun {
		if err = r.MakeMissing(x.cfg, x.facts.Cwd); err != nil {
			return err
		}
	}
	r.engine = gate.Choose(r.mode, x.cfg, x.facts)
	if x.in, r.doors, err = b.inputOf(r).Make(x.cfg, x.facts); err != nil {
		return err
	}
	x.in.SameName = r.sameName
	r.secrets = secretsShown(x.cfg, x.in)
	if x.approvals, err = b.newApprovals(r, x.cfg, x.in); err != nil {
		return err
	}
	x.lookForMarks()
	x.refusals = &report.Refusals{Verbose: r.Verbose, Print: b.Warn}
	if err = x.grantCredentials(); err != nil {
		return err
	}
	if x.net, err = x.network(); err != nil {
		return err
	}
	r.labels = carries(x.in.Carried(), x.facts.Home)
	if x.net != nil && r.helper != nil {
		x.net = nil
		x.in.WithoutNetwork()
	}
	if x.net != nil && r.inPlace { // before anything is started for it
		return planner.NotInPlace("a network")
	}
	x.in.OwnNames = x.net == nil && !x.in.ShareNet && !x.in.NoLoopback && r.helper == nil && !r.inPlace
	if x.nowhere = x.newNowhere(); x.in.OwnNames {
		x.in.Env = egress.WithoutRetries(x.in.Env)
	}
	x.approvals.reaches(x.net)
	if x.root, err = session.Root(host.Lookup(b.Env, "XDG_STATE_HOME"), x.facts.Home); err != nil {
		return err
	}
	x.showCaches()
	return nil
}

// dryRun plans a session that is not made.
func (x *attempt) dryRun() (Outcome, error) {
	sid := cmp.Or(x.r.Name, "dry-run")
	input.Assign(x.in, sid, path.Join(x.root, sid))
	if _, err := x.confine(true); err != nil {
		return Outcome{}, err
	}
	p, losses, err := planner.Build(*x.in)
	mode := x.r.mode
	if x.r.agent != "" {
		mode = x.r.agent + ", " + mode
	}
	about := strings.Join(append([]string{x.r.profile, mode}, x.r.doors.Names()...), ", ")
	return Outcome{Plan: p, Losses: losses, About: about, Asks: x.r.mode == "dynamic"}, err
}

func (x *attempt) confine(dry bool) (*confine.Confined, error) {
	return confine.New(confine.Caller{Env: x.b.Env, Helper: x.r.helper, NoSuid: x.r.NoSuid}, x.cfg, x.in, dry)
}

// open makes the session's folder and starts the network, which takes longest.
func (x *attempt) open() error {
	var err error
	if x.s, err = x.b.create(x.root, x.r.Name); err != nil {
		hint := sessionHint(err)
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
			hint = session.RecordHint
		}
		if hint == "" {
			return err
		}
		return &planner.Refusal{What: err.Error(), Hint: hint}
	}
	input.Assign(x.in, x.s.ID, x.s.Dir)
	x.mediator = x.approvals.mediates(x.in, x.refusals, x.b.Warn)
	x.mediator.Listed = x.cfg.FoundLater()
	if a := x.cfg.Agent; a != nil && x.in.Project != "" {
		x.emptied = placeholders.Missing(x.in.Project, a.Placeholders)
		x.mediator.Placeholder = a.MountPoint(x.in)
	}
	if x.net != nil || x.r.doors.Filtered() {
		x.b.Early.Unbatch() // programs are started now that are to run like any other
	}
	x.net.Begin(x.s.Dir, x.in)
	return nil
}

// prepare plans the sandbox and makes what has to be there before it.
func (x *attempt) prepare() (err error) {
	r := x.r
	x.began = time.Now().Add(-fileClock)
	if x.limited, err = x.confine(false); err != nil {
		return err
	}
	x.watchable()
	if x.plan, x.losses, x.sealed, err = planner.BuildSealed(*x.in); err != nil {
		return err
	}
	x.mediator.Planned(x.plan)
	r.losses = x.losses
	if err = x.b.checkLosses(r, x.losses); err != nil {
		return err
	}
	if err = mediator.EnoughFiles(x.plan); err != nil {
		return err
	}
	if err = x.credentials.MakeFolders(); err != nil {
		return err
	}
	if r.mode == "dynamic" && !r.Quiet {
		x.b.warnHomeHidden(x.plan, x.facts.Home)
	}
	if x.net == nil { // else it has written them
		x.folder = egress.OwnFiles(x.plan, x.in)
	}
	x.folder.Session = x.s.Dir
	x.folder.Dirs = append(x.folder.Dirs, x.s.Layers(x.plan)...)
	if r.Keep {
		if err = x.s.Keep(); err != nil {
			return err
		}
	}
	if err = r.doors.Open(x.s.Dir); err != nil {
		return err
	}
	x.joined, err = x.net.Stage()
	return err
}

// execute builds the sandbox and runs the program in it to its end.
func (x *attempt) execute() (launch.Result, error) {
	b, r := x.b, x.r
	x.svc = b.newService(r, x.in, x.s, x.mediator)
	x.svc.meter, x.limited.Plan = confine.NewMeter(x.limited, x.svc.init, r.Rules), x.plan
	x.svc.meter.Models = x.credentials.Totals
	x.approvals.serve(x.svc)
	x.audit = &auditLog{b: b, r: r, cfg: x.cfg, in: x.in, s: x.s}
	x.log = newStaticLog(x.audit, x.approvals, x.net)
	x.svc.note = x.note
	decoys := x.in.Decoys(x.plan)
	if err := x.watchDecoys(decoys); err != nil {
		return launch.Result{}, err
	}
	fakes := len(decoys) > 0 // which differ from run to run
	x.rec = newRecord(x.s, x.plan, x.log != nil && !r.detached && !fakes && b.Early.Ahead())
	x.rec.log, x.rec.kept = func() string { return r.audit }, r.Keep
	return b.backend(r).Execute(b.context(), launch.Job{Plan: x.plan, Options: launch.Options{
		Stdio: b.Std, Says: x.approvals != nil && b.Context == nil, Signals: b.Signals,
		Timeout: r.timeout, Expiring: func() { x.limited.Count(x.svc.init()) },
		Early: b.Early, Folder: x.folder, Exits: x.joined == nil && !x.limited.Grouped() && b.Context == nil,
		Remember: r.Name == "" && r.helper == nil && !r.inPlace && !fakes && !r.doors.Filtered(),
		Stays:    b.Context != nil, AfterStart: b.afterStart(), Network: x.joined,
		Maps: r.doors.IDs().Maps(x.joined), Cgroup: x.limited.Descriptor(), Cloned: x.limited.Cloned,
		Join: x.approvals.joiner(), Fuse: x.approvals.fuse(x.plan, x.mediator.Server()), Tree: x.mediator.Tree,
		Listener: x.approvals.listener(x.mediator),
		Standing: x.rec.standing(x.log, x.nowhere.Standing(x.limited.Standing(x.svc.standing))),
		Building: x.building,
	}})
}

// building is what is done beside process 1 while that builds the sandbox. Without it the program is not run.
func (x *attempt) building(c *child.Child) error {
	x.b.announce(x.r, x.plan, x.losses)
	hash, err := x.rec.planned(c.Steps())
	if err != nil {
		return err
	}
	if err = x.approvals.start(x.audit, x.plan, x.sealed, hash); err != nil {
		return err
	}
	x.log.begin()
	if err = x.svc.detached(x.s); err != nil {
		return err
	}
	if err = x.serveDoors(hash); err != nil {
		return err
	}
	if err = x.startNetwork(hash, c.PID); err != nil {
		return err
	}
	if err = x.recordCredentials(); err != nil {
		return err
	}
	if err = x.recordDecoys(hash); err != nil {
		return err
	}
	if err = x.carryLabels(); err != nil {
		return err
	}
	return x.net.AwaitCarrier()
}

// end ends what has served the sandbox, and says which limits were reached. err is why nothing was run.
func (x *attempt) end(res launch.Result, err error) (reached []string, _ error) {
	x.decoys.Load().end()
	x.tools.Close()
	x.credentials.Close() // before what it has reported is written down
	x.mediator.End()
	x.left = sync.OnceValue(func() []string {
		lines := x.mediator.Left.Lines(x.plan, x.cfg.FS.MadeRepositories == "neutralise")
		if a := x.approvals; a == nil || a.files == nil && a.mounts == nil { // these serve what a program itself replaces
			lines = append(lines, replaced(x.plan, x.mediator.Replaced)...)
		}
		return lines
	})
	if x.log == nil && x.audit.w != nil { // of questions, doors or the network, which close it
		if lerr := x.audit.refused(x.refusals, false); lerr != nil {
			x.b.Warn("writing the session's audit log: " + lerr.Error())
		}
	}
	x.net.Close()
	x.nowhere.Close()
	x.emptied.Remove(x.in.Project)
	if oerr := x.in.Own.Save(); oerr != nil {
		x.b.Warn(oerr.Error() + ": what programs made there is hidden in the next run")
	}
	if rerr := x.rec.end(); err == nil {
		err = rerr
	}
	x.svc.meter.Over.Store(true)
	reached = x.limited.End(res.After)
	x.approvals.end(res, reached, x.left)
	x.svc.close(res.Status) // who waits for the end hears of it before what is left is looked through
	x.log.end(res, err == nil, x.refusals, reached, x.left)
	if lerr := x.s.WriteLeft(x.left()); lerr != nil {
		x.b.Warn("writing what the session left: " + lerr.Error())
	}
	if err == nil {
		x.svc.ended(res.Status)
	}
	return reached, err
}

// outcome closes the session and says what came of it.
func (x *attempt) outcome(res launch.Result, reached []string) Outcome {
	b, r := x.b, x.r
	if res.Unwritten != nil {
		b.Warn("not all of the program's output is there: " + res.Unwritten.Error())
	}
	x.keepCaches()
	reached = append(reached, x.unsaved(res.Status)...)
	cerr := x.s.Close(r.Keep)
	if strings.HasSuffix(x.s.ID, "a") || strings.HasSuffix(x.s.ID, "b") { // now and then: it looks at every record
		runtime, state := host.Lookup(b.Env, "XDG_RUNTIME_DIR"), host.Lookup(b.Env, "XDG_STATE_HOME")
		control.Clean(x.root, control.FindRoot(runtime, state, x.facts.Home), true)
		caches.Sweep(caches.Root(x.root), time.Now())
	}
	if cerr != nil {
		b.Warn(cerr.Error())
	}
	if !r.Quiet {
		for _, line := range reached {
			b.Warn(line)
		}
		b.sayKept(r, x.s.ID, x.s.Dir, x.plan)
	}
	if err := x.approvals.writeLearned(); err != nil {
		b.Warn(err.Error())
	}
	accesses, labels := x.approvals.summary()
	return Outcome{Result: res, Timeout: r.timeout, Audit: r.audit,
		Report: report.Summarize(report.Ended{SID: x.s.ID, Status: res.Status, TimedOut: res.TimedOut,
			Accesses: accesses, Refused: x.refusals, Left: x.left(), Labels: labels})}
}
