//go:build linux

package faststart

import (
	"os"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
)

// entered is the process 1 that was cloned when this process started.
type entered struct {
	init  *child.Init // nil: it was taken, or has ended
	ahead *ahead      // nil: it waits for its plan
	place *placement
}

// startTime is how long the broker's threads wait for the program's start.
const startTime = 20 * time.Millisecond

// Take implements child.Early.
func (e *entered) Take(p *plan.Plan, std stage.Stdio, h *child.Hooks) *child.Init {
	if e.init == nil {
		return nil
	}
	if h.Cgroup > 0 || !e.init.Suits(p, std) || !e.foresaw(p, std, h) {
		e.Unbatch() // what is cloned now inherits it
		e.End()
		return nil
	}
	time.AfterFunc(startTime, e.Unbatch)
	i := e.init
	e.init = nil
	i.Release = func() error { return e.place.join(i.PID()) }
	return i
}

// Unbatch implements child.Early.
func (e *entered) Unbatch() { e.place.unbatch() }

// End implements child.Early.
func (e *entered) End() {
	if e.init == nil {
		return
	}
	e.Unbatch()
	if e.init.End(); e.ahead != nil {
		e.ahead.foreign = e.init.Failed() == syscall.EEXIST
	}
	e.init.Unmap()
	e.init = nil // who tries again comes with this one
}

// TakeSession implements child.Early.
func (e *entered) TakeSession() string {
	if e.ahead == nil || e.ahead.taken {
		return ""
	}
	e.ahead.taken = true
	return e.ahead.dir
}

// Ahead implements child.Early.
func (e *entered) Ahead() bool { return e.ahead != nil && e.init != nil }

// Abandon implements child.Early.
func (e *entered) Abandon() {
	if e.ahead != nil && !e.ahead.taken {
		e.Discard()
	}
}

// Discard implements child.Early.
func (e *entered) Discard() {
	dir := e.ahead.dir
	if e.End(); !e.ahead.foreign {
		_ = os.RemoveAll(dir)
	}
}

// Fault says why process 1 could not be cloned when this process started; nil if it was, or was not tried.
func Fault() error {
	if entry.errno == 0 {
		return nil
	}
	return child.CloneFault(plan.Namespaces{User: true}, entry.errno)
}

// Entered returns the process 1 that was cloned when this process started.
func Entered() child.Early {
	b := entry.block
	if entry.pid == 0 {
		return child.NoEarly{}
	}
	e := &entered{place: &entry.place, init: child.NewInit(b, int(entry.pid), int(entry.pair[0]), int(entry.pair[1]),
		entry.flags)}
	entry.pid = 0
	e.place.hurry()
	if x := &entry.ahead; x.file != nil {
		e.ahead = &ahead{file: x.file, dir: x.folder()}
	}
	return e
}
