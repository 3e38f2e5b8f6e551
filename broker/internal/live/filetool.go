//go:build linux

package live

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/files"
	"sbx.example/sbx/broker/internal/launch"
)

// filePatience is how long an operation on files may take, questions and all.
const filePatience = 15 * time.Minute

var errOnlyFiles = errors.New("only the programs that --only names run in this session, and what works on its files " +
	"would be another")

// operation is one on files that runs inside.
type operation struct {
	v     *service
	run   *launch.Running
	q     files.Request
	began time.Time

	mu   sync.Mutex
	pid  int
	late *time.Timer
	over bool
}

// file has an operation on files carried out inside, as a program of the session's would. What it answers goes to the
// client and past the broker.
func (v *service) file(run *launch.Running, e *launch.Exec, q files.Request) error {
	if v.in.Only != nil {
		return errOnlyFiles
	}
	self, err := v.self.Open(files.Name)
	if err != nil {
		return err
	}
	o := &operation{v: v, run: run, q: q.In(string(run.Plan.Process.Dir)), began: time.Now()}
	if e.Argv, err = o.q.Argv(); err != nil {
		return err
	}
	if err = o.note("", "begun"); err != nil {
		return fmt.Errorf("recording the operation: %w", err)
	}
	e.Files[2], e.Third = self, true
	started, exited := e.Started, e.Exited
	e.Started = func(pid int) {
		o.started(pid)
		started(pid)
	}
	e.Stopped = func(syscall.Signal) { o.stopped() }
	e.Exited = func(pid int, res launch.Result, err error) {
		o.ended(res, err)
		exited(pid, res, err)
	}
	return nil
}

// started bounds how long the operation takes.
func (o *operation) started(pid int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pid = pid
	if !o.over {
		o.late = time.AfterFunc(filePatience, o.kill)
	}
}

// stopped is for one that somebody inside has stopped, who would have its caller wait for ever. A session that is
// frozen stops everything.
func (o *operation) stopped() {
	if !o.run.Frozen() {
		go o.kill() // it waits for whoever calls this
	}
}

func (o *operation) kill() {
	o.mu.Lock()
	pid := o.pid
	over := o.over
	o.mu.Unlock()
	if !over && pid > 0 {
		_ = o.run.Signal(pid, unix.SIGKILL)
	}
}

func (o *operation) ended(res launch.Result, err error) {
	o.mu.Lock()
	o.over = true
	if o.late != nil {
		o.late.Stop()
	}
	o.mu.Unlock()
	decision, outcome := "deny", files.Outcome(res.Status)
	switch {
	case err != nil:
		outcome = err.Error()
	case res.Signal != 0:
		outcome = "ended by " + unix.SignalName(res.Signal)
	case res.Status == 0:
		decision = "allow"
	}
	_ = o.note(decision, outcome)
}

// note writes down that an operation was begun, or what came of it.
func (o *operation) note(decision, outcome string) error {
	p := string(o.q.Path)
	if !path.IsAbs(p) {
		p = path.Join(string(o.q.Root), ".") + "/" + p
	}
	e := audit.Event{Kind: audit.KindFile, UID: os.Getuid(), Op: o.q.Op, Path: p, Decision: decision, Reason: outcome}
	if decision != "" {
		e.Detail = []audit.KV{{K: "seconds", V: strconv.FormatFloat(time.Since(o.began).Seconds(), 'f', 3, 64)}}
	}
	return o.v.note(e)
}
