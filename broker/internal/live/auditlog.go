//go:build linux

package live

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
)

// auditLog is the record of a session, and what its first line says. Who has something to record first opens it:
// questions, doors, the network, or in the end the session itself (see staticLog).
type auditLog struct {
	b   *Broker
	r   *run
	cfg request.Settings
	in  *planner.Input
	s   *session.Session
	w   *audit.Writer // nil: nobody has opened it

	mode prompt.Mode // of the questions; empty: there are none
}

// open is create for what cannot do without a record.
func (l *auditLog) open(planHash string) error {
	if err := l.create(planHash, time.Time{}); err != nil {
		return &planner.Refusal{What: "starting the session's audit log", Err: err, Hint: session.RecordHint}
	}
	return nil
}

// create starts the log with what this host cannot enforce; a zero begin is now. A name may have been used before: the
// old log stays as it is.
func (l *auditLog) create(planHash string, begin time.Time) error {
	opt := audit.Options{PlanHash: planHash, MaxBytes: 16 << 20,
		Start: audit.Event{Time: begin, UID: os.Getuid(), PID: os.Getpid(), Cwd: l.in.Dir, Op: "run", Path: l.r.argv[0],
			Detail: []audit.KV{{K: "profile", V: l.r.profile}, {K: "mode", V: l.r.mode}, {K: "prompt", V: string(l.mode)}}}}
	opt.Syslog = l.b.forward(l.cfg)
	dir := path.Join(path.Dir(path.Dir(l.s.Dir)), "audit")
	w, err := audit.Create(dir, l.s.ID, opt)
	if errors.Is(err, unix.EEXIST) && len(l.s.ID) < 57 {
		w, err = audit.Create(dir, l.s.ID+"-"+session.NewID(), opt)
	}
	if err != nil {
		return err
	}
	l.r.audit = w.Path()
	for _, x := range l.r.losses {
		if _, err := w.Note(audit.Event{Kind: audit.KindLoss, UID: os.Getuid(), Reason: x.String()}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	shown := l.in.Labels
	if l.mode != "" { // the arbiter records them
		shown = nil
	}
	for _, x := range shown {
		if _, err := w.Note(audit.Event{Kind: audit.KindLabel, UID: os.Getuid(), Op: "read", Path: x.Place,
			RuleOrigin: x.Why, Reason: "shown from the start", Detail: []audit.KV{{K: "label", V: x.Name}}}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	for _, g := range l.in.Grants {
		if g.Reveal {
			if _, err := w.Note(audit.Event{Kind: audit.KindAllow, UID: os.Getuid(), Op: "read", Path: g.Path,
				Decision: "allow", RuleOrigin: g.Why, Life: "session",
				Reason: "secret shown from the start, to every program"}); err != nil {
				return errors.Join(err, w.Close())
			}
		}
	}
	l.w = w
	return nil
}

// note records something of a session that stands.
func (x *attempt) note(e audit.Event) error {
	if x.log != nil {
		return x.log.note(e)
	}
	if x.audit.w == nil {
		return errors.New("the session keeps no record")
	}
	_, err := x.audit.w.Note(e)
	return err
}

// noteLeft records what the session left that somebody may run outside.
func noteLeft(w *audit.Writer, left []string) error {
	for _, line := range left {
		if _, err := w.Note(audit.Event{Kind: audit.KindLeft, UID: os.Getuid(), Reason: line}); err != nil {
			return err
		}
	}
	return nil
}

// exited is the record of a program's end.
func exited(res launch.Result, reached []string) audit.Event {
	detail := []audit.KV{{K: "status", V: strconv.Itoa(res.Status)}}
	if res.TimedOut {
		detail = append(detail, audit.KV{K: "timed_out", V: "true"})
	}
	return audit.Event{Kind: audit.KindExit, UID: os.Getuid(), Reason: strings.Join(reached, "; "), Detail: detail}
}

// refused records what the filter refused, and with all also what was kept from a path or a host: where an arbiter
// settles those it has recorded them.
func (l *auditLog) refused(b *report.Refusals, all bool) error {
	for _, e := range b.Events(all) {
		if _, err := l.w.Note(e); err != nil {
			return err
		}
	}
	return nil
}
