//go:build linux

package live

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/report"
)

// staticLog is the audit log of a session that decides nothing: which plan was run, what was refused, how it ended. It
// is not synced: nothing depends on it. A nil one is that of a session with a log of its own.
type staticLog struct {
	log   *auditLog
	hash  string
	began time.Time

	mu  sync.Mutex // for log, too
	err error
}

// newStaticLog prepares the log of a session that nobody else keeps one for.
func newStaticLog(log *auditLog, approvals *approvals, net *egress.Network) *staticLog {
	if approvals != nil || net != nil || log.r.doors.Any() {
		return nil
	}
	return &staticLog{log: log}
}

// begin is called while the sandbox is built.
func (l *staticLog) begin() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = time.Now()
}

// opened makes the file, with the plan's hash, once the program is on its way: nothing of it is in the way of the
// start.
func (l *staticLog) opened(hash string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hash = hash
	l.open()
}

// open makes the file; l.mu is held.
func (l *staticLog) open() {
	if l.log.w == nil && l.err == nil {
		l.err = l.log.create(l.hash, l.began)
	}
}

// note writes a record while the session runs.
func (l *staticLog) note(e audit.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open(); l.err != nil {
		return l.err
	}
	_, err := l.log.w.Note(e)
	return err
}

// end writes what was refused and how the session ended, and seals the log. Where nothing was run there is none, unless
// it was begun.
func (l *staticLog) end(res launch.Result, ran bool, refused *report.Refusals, reached []string,
	left func() []string) {
	if l == nil || l.began.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ran {
		l.open()
	}
	if w := l.log.w; w != nil {
		l.err = l.log.refused(refused, true)
		lerr := noteLeft(w, left())
		_, err := w.Note(exited(res, reached))
		if cerr := w.Close(); l.err == nil {
			l.err = cmp.Or(lerr, err, cerr)
		}
	}
	if l.err != nil {
		l.log.b.Warn(fmt.Sprintf("writing the session's audit log: %v", l.err))
	}
}
