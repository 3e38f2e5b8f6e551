package live

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/client"
	"sbx/broker/internal/child"
	"sbx/broker/internal/confine"
	"sbx/broker/internal/control"
	"sbx/broker/internal/handover"
	"sbx/broker/internal/host"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/session"
	"sbx/broker/plan"
)

// lateSocket is after how long a foreground session that asks nobody can be reached: most are over by then,
// and the socket is in the way of the start.
const lateSocket = 150 * time.Millisecond

// service is what a session offers to other commands of its user: the session socket and the programs that
// are started over it. A session that asks opens it at once, with handlers of its own.
type service struct {
	b       *Broker
	r       *run
	in      *planner.Input
	s       *session.Session
	refused *blocked
	asks    *asking
	meter   *confine.Meter
	stands  chan struct{} // closed when run is set
	run     *launch.Running

	mu     sync.Mutex
	server *control.Server
	closed bool
	live   int              // programs that were asked for and have not ended
	execs  map[int]*execRun // by pid inside, those that have told it
	hung   []int            // programs whose client has gone while everything stood still
	early  map[int][]string // refusals of sessions that may be those of programs of which nothing was heard yet
}

// execRun is one program that was started over the socket.
type execRun struct {
	pid     int
	pty     *os.File
	told    bool
	begin   time.Time
	blocked []string
}

func (b *Broker) newService(r *run, in *planner.Input, s *session.Session, refused *blocked) *service {
	v := &service{b: b, r: r, in: in, s: s, refused: refused, stands: make(chan struct{}), execs: map[int]*execRun{},
		early: map[int][]string{}}
	refused.attribute = v.attribute
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
	argv := make([]plan.Bytes, len(v.r.argv))
	for i, w := range v.r.argv {
		argv[i] = plan.Bytes(w)
	}
	info := control.Info{SID: v.s.ID, PID: os.Getpid(), Started: time.Now(), Profile: v.r.profile, Mode: v.r.mode,
		Cwd: plan.Bytes(v.in.Dir), Argv: argv}
	joined := func() { v.meter.Joined(v.listening) }
	if v.server, err = control.Listen(root, info, h, control.Options{Joined: joined}); err != nil {
		v.server = nil
		return nil, err
	}
	go func(s *control.Server) { _ = s.Serve() }(v.server)
	return v.server, nil
}

// standing is launch's: from here on programs can be started.
func (v *service) standing(run *launch.Running) {
	v.r.doors.IDs().Standing(run.Child)
	v.refused.writes.repeats.standing(run.Child)
	v.asks.standing(run.Child, run.Plan)
	v.refused.writes.standing(run.Child, v.b.Warn)
	v.run = run
	if v.meter.Limited.Grouped() {
		run.Freezer = v.meter.Limited.Group.Freeze
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
}

func controlRoot(env []string, home string) (string, error) {
	return control.Root(host.Lookup(env, "XDG_RUNTIME_DIR"), host.Lookup(env, "XDG_STATE_HOME"), home)
}

var errNotStanding = errors.New("the sandbox is still being built, or it could not be: try again")

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

// exec starts a program for a client.
func (v *service) exec(e control.Exec, ev control.ExecEvents) error {
	run, err := v.running()
	if err != nil {
		return err
	}
	for i, f := range e.Files {
		if f == nil {
			continue
		}
		if err := handover.Check(i, int(f.Fd())); err != nil {
			return err
		}
	}
	if e.Cwd != "" && !strings.HasPrefix(string(e.Cwd), "/") {
		return errors.New("cwd is not an absolute path")
	}
	for _, s := range e.Env {
		if k, _, ok := strings.Cut(string(s), "="); !ok || k == "" {
			return fmt.Errorf("env: %s is not NAME=VALUE", s.Quote())
		}
	}
	x := &execRun{begin: time.Now()}
	started := func() { // told once: with the terminal, where there is to be one
		if !x.told && x.pid != 0 && (!e.TTY || x.pty != nil) {
			x.told = true
			ev.Started(x.pid, x.pty)
		}
	}
	v.mu.Lock()
	v.live++
	v.mu.Unlock()
	err = run.Exec(launch.Exec{Argv: stringsOf(e.Argv), Env: stringsOf(e.Env), Dir: string(e.Cwd), Files: e.Files,
		TTY: e.TTY, Rows: uint16(e.Rows), Cols: uint16(e.Cols),
		Started: func(pid int) {
			x.pid = pid
			v.mu.Lock()
			v.execs[pid] = x
			v.mu.Unlock()
			started()
		},
		Pty: func(f *os.File) { x.pty = f; started() },
		Exited: func(pid int, res launch.Result, err error) {
			if x.pty != nil && !x.told { // over at once, but what it has written is in its terminal
				x.told = true
				ev.Started(pid, x.pty)
			}
			end := control.ExecEnd{PID: pid, Status: res.Status, Duration: time.Since(x.begin)}
			if res.Signal != 0 {
				end.Signal = strings.TrimPrefix(unix.SignalName(res.Signal), "SIG")
			}
			switch {
			case child.IsGone(err):
				end.Error, end.Limits = client.ErrEnded.Error(), v.meter.Limited.EndedBy()
			case err != nil:
				end.Error = err.Error()
			}
			if res.Status != 0 && err == nil {
				end.Limits = v.meter.Limited.ReachedBy(pid, v.init(), run.Child)
			}
			v.mu.Lock()
			delete(v.execs, pid)
			end.Blocked = append(x.blocked, v.early[pid]...)
			delete(v.early, pid)
			if v.live--; v.live == 0 {
				clear(v.early)
			}
			v.mu.Unlock()
			ev.Ended(end)
		}})
	if err != nil {
		v.mu.Lock()
		v.live--
		v.mu.Unlock()
	}
	return err
}

func stringsOf(list []plan.Bytes) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// hangUp is for a program whose client has gone.
func (v *service) hangUp(pid int) {
	if run, err := v.running(); err == nil {
		if run.Still() {
			v.mu.Lock()
			v.hung = append(v.hung, pid)
			v.mu.Unlock()
			return
		}
		_ = run.Signal(pid, syscall.SIGHUP)
		_ = run.Signal(pid, syscall.SIGCONT)
	}
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
		return errors.New("process 1 is the sandbox's own: name another pid, or end the session")
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
	_ = os.Remove(v.s.Dir + "/frozen")
	err = run.Thaw()
	v.mu.Lock()
	hung := v.hung
	v.hung = nil
	v.mu.Unlock()
	for _, pid := range hung {
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

// maxExecBlocked is how many refusals one program's end tells of.
const maxExecBlocked = 64

// maxEarly bounds the sessions of which refusals are kept until it is known whose they are.
const maxEarly = 256

// attribute notes a refused call of the process pid with the program that it belongs to: by its session, or
// by its parents where it has made one of its own.
func (v *service) attribute(pid uint32, line string) {
	for i := 0; i < 64 && pid > 1; i++ {
		sid, inside, parent := host.Lineage(pid)
		v.mu.Lock()
		x := v.execs[sid]
		if x == nil {
			x = v.execs[inside]
		}
		switch {
		case v.live == 0:
			inside = 0
		case x != nil && len(x.blocked) < maxExecBlocked:
			x.blocked = append(x.blocked, line)
		case x == nil && i == 0 && len(v.early) < maxEarly && len(v.early[sid]) < maxExecBlocked:
			v.early[sid] = append(v.early[sid], line)
		}
		v.mu.Unlock()
		if x != nil || inside <= 1 {
			return
		}
		pid = parent
	}
}
