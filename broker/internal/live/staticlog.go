package live

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/audit"
	"sbx/broker/internal/egress"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/session"
)

// staticLog is the audit log of a session that decides nothing: which plan was run, what was refused, how it ended. It
// is not synced: nothing depends on it. A nil one is that of a session with a log of its own.
type staticLog struct {
	a     *asking // says how its start record is worded; it asks nobody
	s     *session.Session
	hash  string
	began time.Time

	mu  sync.Mutex
	w   *audit.Writer
	err error
}

// newStaticLog prepares the log of a session that nobody else keeps one for.
func newStaticLog(a *asking, s *session.Session, asks *asking, net *egress.Network) *staticLog {
	if asks != nil || net != nil || a.r.doors.Any() {
		return nil
	}
	return &staticLog{a: a, s: s}
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
	if l.w == nil && l.err == nil {
		l.w, l.err = l.a.openLog(l.s, l.hash, l.began)
	}
}

// end writes what was refused and how the session ended, and seals the log. Where nothing was run there is none, unless
// it was begun.
func (l *staticLog) end(res launch.Result, ran bool, refused *blocked, reached []string) {
	if l == nil || l.began.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ran {
		l.open()
	}
	if l.w != nil {
		for _, line := range refused.all() {
			_, l.err = l.w.Note(audit.Event{Kind: audit.KindBlocked, UID: os.Getuid(), Decision: "deny",
				Reason: strings.TrimPrefix(line, "blocked: ")})
		}
		detail := []audit.KV{{K: "status", V: strconv.Itoa(res.Status)}}
		if res.TimedOut {
			detail = append(detail, audit.KV{K: "timed_out", V: "true"})
		}
		_, l.err = l.w.Note(audit.Event{Kind: audit.KindExit, UID: os.Getuid(), Reason: strings.Join(reached, "; "),
			Detail: detail})
		if err := l.w.Close(); l.err == nil {
			l.err = err
		}
	}
	if l.err != nil {
		l.a.b.Warn(fmt.Sprintf("writing the session's audit log: %v", l.err))
	}
}
