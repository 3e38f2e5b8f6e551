//go:build linux

package live

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/confine"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/mediator"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// lateSocket is after how long a foreground session that asks nobody can be reached: most are over by then,
// and the socket is in the way of the start.
const lateSocket = 150 * time.Millisecond

// service is what a session offers to other commands of its user: the session socket and the programs that
// are started over it. A session that asks opens it at once, with handlers of its own.
type service struct {
	b         *Broker
	r         *run
	in        *planner.Input
	s         *session.Session
	mediator  *mediator.Mediator
	approvals *approvals
	meter     *confine.Meter
	stands    chan struct{} // closed when run is set
	run       *launch.Running

	programs programs
	self     program.Copy            // executed inside for operations on files
	note     func(audit.Event) error // writes something in the session's record
	held     atomic.Bool             // nobody lets it go on before a question is answered, see decoys

	mu     sync.Mutex
	server *control.Server
	closed bool
}

func (b *Broker) newService(r *run, in *planner.Input, s *session.Session, m *mediator.Mediator) *service {
	v := &service{b: b, r: r, in: in, s: s, mediator: m, stands: make(chan struct{})}
	m.Attribute(v.programs.attribute)
	return v
}

// open makes the socket. h may hold handlers for questions; those for programs are the service's.
func (v *service) open(h control.Handlers) (*control.Server, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.server != nil || v.closed {
		return v.server, nil
	}
	root, err := controlRoot(v.b.Env, v.in.Facts.Home)
	if err != nil {
		return nil, err
	}
	h.Exec, h.HangUp, h.Kill, h.Freeze, h.Thaw, h.Frozen, h.Init, h.Stats = v.exec, v.hangUp, v.kill, v.freeze, v.thaw,
		v.frozen, v.init, v.meter.Stats
	info := control.Info{SID: v.s.ID, PID: os.Getpid(), Started: time.Now(), Profile: v.r.profile, Mode: v.r.mode,
		Prompt: v.approvals.answeredFrom(), Cwd: plan.Bytes(v.in.Dir), Argv: plan.BytesOf(v.r.argv)}
	joined := func() { v.meter.Joined(v.listening) }
	if v.server, err = control.Listen(root, info, h, control.Options{Joined: joined,
		Alone: v.b.Context == nil}); err != nil {
		v.server = nil
		return nil, err
	}
	go func(s *control.Server) { _ = s.Serve() }(v.server)
	return v.server, nil
}

// standing is launch's: from here on programs can be started.
func (v *service) standing(run *launch.Running) {
	v.r.doors.IDs().Standing(run.Child)
	v.mediator.Standing(run.Child)
	v.approvals.standing(run.Child, run.Plan)
	v.mediator.Watch(run.Child)
	v.run = run
	if g := v.meter.Limited.Placed(); g != nil {
		run.Freezer = g.Freeze
	}
	close(v.stands)
	v.meter.Guard(v.endAll)
	v.meter.HoldMemory(v.endAll)
	v.meter.HoldShare()
	if v.r.detached {
		go v.announceDetached()
	}
	if v.server != nil || v.r.detached {
		return
	}
	time.AfterFunc(lateSocket, func() {
		if _, err := v.open(control.Handlers{}); err != nil && v.r.Verbose {
			v.b.Warn(fmt.Sprintf("making the session's socket: %v", err))
		}
	})
}

// listening is the socket, or nil.
func (v *service) listening() *control.Server {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil
	}
	return v.server
}

// close tells the clients that the session has ended.
func (v *service) close(status int) {
	v.mu.Lock()
	server := v.server
	if v.closed {
		server = nil
	}
	v.closed = true
	v.mu.Unlock()
	if server != nil {
		server.Exit(status)
		server.Close()
	}
	v.self.Close()
}

func controlRoot(env []string, home string) (string, error) {
	return control.Root(host.Lookup(env, "XDG_RUNTIME_DIR"), host.Lookup(env, "XDG_STATE_HOME"), home)
}

var errNotStanding = errors.New("the sandbox is still being built, or it could not be: try again")

// interrupt has the program hear Ctrl-C; what waits for an answer runs already.
func (v *service) interrupt() {
	if run, err := v.running(); err == nil {
		run.Interrupt()
	}
}

// running waits until the sandbox stands.
func (v *service) running() (*launch.Running, error) {
	select {
	case <-v.stands:
		return v.run, nil
	case <-time.After(5 * time.Second):
		return nil, errNotStanding
	}
}

func (v *service) init() int {
	select {
	case <-v.stands:
		if !v.run.Child.Gone() {
			return v.run.Child.PID
		}
	default:
	}
	return 0
}

func (v *service) kill(pid int, signal string) error {
	run, err := v.running()
	if err != nil {
		return err
	}
	if pid == 0 && signal == "" {
		v.endAll()
		return nil
	}
	sig, err := control.Signal(signal)
	if err != nil {
		return err
	}
	if pid == 1 || pid < 0 {
		return errors.New("pid 1 is sbx's own in every sandbox: name another pid, or end the session")
	}
	return run.Signal(pid, sig)
}

// endAll kills everything in a sandbox that stands.
func (v *service) endAll() {
	v.meter.Limited.Count(v.init())
	v.run.Child.SendKill()
}

func (v *service) freeze() error {
	run, err := v.running()
	if err != nil {
		return err
	}
	if err := run.Freeze(); err != nil {
		return err
	}
	how := "signal"
	if run.Still() {
		how = "cgroup"
	}
	return v.s.WriteFile("frozen", []byte(how+"\n"))
}

func (v *service) thaw() error {
	run, err := v.running()
	if err != nil {
		return err
	}
	if v.held.Load() {
		return errors.New("a decoy was touched: answer the question about it (sbx approve), or end the session (sbx kill)")
	}
	_ = os.Remove(v.s.Dir + "/frozen")
	err = run.Thaw()
	for _, pid := range v.programs.thawed() {
		v.hangUp(pid)
	}
	return err
}

func (v *service) frozen() bool {
	select {
	case <-v.stands:
		return v.run.Frozen()
	default:
		return false
	}
}
