//go:build linux

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

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/handover"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/plan"
)

// programs are those that clients have started in a session, and the refusals of each. The zero value is ready.
type programs struct {
	mu    sync.Mutex
	asked int                // that were asked for and have not ended
	byPID map[int]*execution // by pid inside, those that have told it
	hung  []int              // those whose client has gone while everything stood still
	early map[int][]string   // refusals of sessions that may be those of programs of which nothing was heard yet
}

// execution is one program that was started over the socket.
type execution struct {
	v       *service
	run     *launch.Running
	events  control.ExecEvents
	tty     bool // it has a terminal of its own
	pid     int
	pty     *os.File
	told    bool // the client knows that it has started
	begin   time.Time
	blocked []string
}

// exec starts a program for a client.
func (v *service) exec(e control.Exec, ev control.ExecEvents) error {
	run, err := v.running()
	if err != nil {
		return err
	}
	if err = checkExec(e); err != nil {
		return err
	}
	x := &execution{v: v, run: run, events: ev, tty: e.TTY, begin: time.Now()}
	l := launch.Exec{Argv: v.in.Inside(plan.StringsOf(e.Argv)), Env: plan.StringsOf(e.Env), Dir: string(e.Cwd),
		NoLinks: e.NoLinks, Files: e.Files, TTY: e.TTY, Rows: uint16(e.Rows), Cols: uint16(e.Cols),
		Started: x.started, Pty: x.gotPty, Exited: x.exited}
	if e.File != nil {
		if err = v.file(run, &l, *e.File); err != nil {
			return err
		}
	}
	v.programs.begin()
	if err = run.Exec(l); err != nil {
		v.programs.unbegun()
	}
	return err
}

// checkExec says what of a client's wish cannot be.
func checkExec(e control.Exec) error {
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
	return nil
}

func (x *execution) started(pid int) {
	x.pid = pid
	x.v.programs.started(x)
	x.tell()
}

func (x *execution) gotPty(f *os.File) {
	x.pty = f
	x.tell()
}

// tell tells the client once that the program has started: with the terminal, where there is to be one.
func (x *execution) tell() {
	if !x.told && x.pid != 0 && (!x.tty || x.pty != nil) {
		x.told = true
		x.events.Started(x.pid, x.pty)
	}
}

func (x *execution) exited(pid int, res launch.Result, err error) {
	if x.pty != nil && !x.told { // over at once, but what it has written is in its terminal
		x.told = true
		x.events.Started(pid, x.pty)
	}
	limited := x.v.meter.Limited
	end := control.ExecEnd{PID: pid, Status: res.Status, Duration: time.Since(x.begin)}
	if res.Signal != 0 {
		end.Signal = strings.TrimPrefix(unix.SignalName(res.Signal), "SIG")
	}
	switch {
	case child.IsGone(err):
		end.Error, end.Limits = client.ErrEnded.Error(), limited.EndedBy()
	case err != nil:
		end.Error = err.Error()
	case res.Status != 0:
		end.Limits = limited.ReachedBy(pid, x.v.init(), x.run.Child)
	}
	end.Blocked = x.v.programs.ended(pid, x)
	x.events.Ended(end)
}

// hangUp is for a program whose client has gone.
func (v *service) hangUp(pid int) {
	run, err := v.running()
	if err != nil {
		return
	}
	if run.Still() {
		v.programs.waitForThaw(pid)
		return
	}
	_ = run.Signal(pid, syscall.SIGHUP)
	_ = run.Signal(pid, syscall.SIGCONT)
}

func (p *programs) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
}

// unbegun is for one that could not be started.
func (p *programs) unbegun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked--
}

func (p *programs) started(x *execution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPID == nil {
		p.byPID = make(map[int]*execution)
	}
	p.byPID[x.pid] = x
}

// ended takes a program off and returns what it was refused.
func (p *programs) ended(pid int, x *execution) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byPID, pid)
	refused := append(x.blocked, p.early[pid]...)
	delete(p.early, pid)
	if p.asked--; p.asked == 0 {
		clear(p.early)
	}
	return refused
}

// waitForThaw keeps a program that is to be hung up while everything stands still.
func (p *programs) waitForThaw(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hung = append(p.hung, pid)
}

// thawed are the programs that were to be hung up meanwhile.
func (p *programs) thawed() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	hung := p.hung
	p.hung = nil
	return hung
}

// maxExecBlocked is how many refusals one program's end tells of.
const maxExecBlocked = 64

// maxEarly bounds the sessions of which refusals are kept until it is known whose they are.
const maxEarly = 256

// attribute notes a refused call of the process pid with the program that it belongs to: by its session, or
// by its parents where it has made one of its own.
func (p *programs) attribute(pid uint32, line string) {
	for i := 0; i < 64 && pid > 1; i++ {
		sid, inside, parent := host.Lineage(pid)
		if p.note(sid, inside, i == 0, line) {
			return
		}
		pid = parent
	}
}

// note keeps a refusal of a process of the session sid that is called pid inside, and says whether no parent is to be
// asked; first is the process that was refused something.
func (p *programs) note(sid, pid int, first bool, line string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.byPID[sid]
	if x == nil {
		x = p.byPID[pid]
	}
	switch {
	case p.asked == 0:
		return true
	case x != nil && len(x.blocked) < maxExecBlocked:
		x.blocked = append(x.blocked, line)
	case x == nil && first && len(p.early) < maxEarly && len(p.early[sid]) < maxExecBlocked:
		if p.early == nil {
			p.early = make(map[int][]string)
		}
		p.early[sid] = append(p.early[sid], line)
	}
	return x != nil || pid <= 1
}
