package live

import (
	"os"
	"path"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx/audit"
	"sbx/broker/internal/decide"
	"sbx/broker/internal/doors"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/program"
	"sbx/broker/internal/quoting"
	"sbx/broker/internal/session"
)

// serveDoors writes down what the sandbox was given, and has it answered. rec is for sessions that keep no record of
// questions.
func (b *Broker) serveDoors(r *run, asks, rec *asking, s *session.Session, planHash string) error {
	if !r.doors.Any() {
		return nil
	}
	x := doors.Session{Refused: func(of string) doors.Refuser { return refuser(asks, rec, of) }}
	if asks != nil {
		x.Log, x.Ask = asks.log, asks.ask
		asks.report.filters = r.doors.Paths()
		if asks.files == nil {
			x.Connect = asks.connections.At
		}
		return r.doors.Serve(x)
	}
	var err error
	if rec.log, err = rec.openLog(s, planHash, time.Time{}); err != nil {
		return &planner.Refusal{What: "starting the session's audit log", Err: err, Hint: session.RecordHint}
	}
	x.Log, x.OwnLog = rec.log, true
	return r.doors.Serve(x)
}

// refuser records what a filter refused as the session's other refusals are; there is a summary of questions or there
// is not.
func refuser(asks, rec *asking, of string) doors.Refuser {
	n := new(atomic.Int32)
	return func(a decide.Ask, reason string) {
		a.Op, a.Kind = "connect", policy.KindSocket
		a.Exe, a.Cwd = program.Links(a.PID)
		if asks != nil {
			asks.arb.Refused(a, decide.Verdict{Errno: int(unix.EACCES), Reason: reason})
			return
		}
		if n.Add(1) <= maxRefused {
			_, _ = rec.log.Note(audit.Event{Kind: audit.KindDeny, UID: os.Getuid(), PID: a.PID, Exe: a.Exe, Cwd: a.Cwd, Op: a.Op,
				Path: a.Path, Decision: "deny", Reason: reason, Errno: "EACCES"})
			if !rec.r.Quiet {
				rec.b.Warn("blocked: " + quoting.Quote(path.Base(a.Path)) + " of " + of + " by " + caller(uint32(a.PID)) + ": " +
					reason)
			}
		}
	}
}

// maxRefused bounds what is recorded and printed of one filter where no arbiter counts.
const maxRefused = 1000
