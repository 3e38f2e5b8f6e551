//go:build linux

package live

import (
	"fmt"
	"os"
	"path"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/doors"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/report"
)

// serveDoors writes down what the sandbox was given, and has it answered.
func (x *attempt) serveDoors(planHash string) error {
	open := x.r.doors
	if !open.Any() {
		return nil
	}
	s := doors.Session{Refused: x.refuser}
	if a := x.approvals; a != nil {
		s.Log, s.Ask = a.log, a.ask
		a.report.Filters = open.Paths()
		if a.files == nil {
			s.Connect = a.connections.At
		}
	} else {
		if err := x.audit.open(planHash); err != nil {
			return err
		}
		s.Log, s.OwnLog = x.audit.w, true
	}
	if len(open.Found) > 0 {
		x.tools = x.newTools(s)
		s.Tools = x.tools
	}
	return open.Serve(s)
}

// refuser records what the filter of something refused as the session's other refusals are; there is a summary of
// questions or there is not.
func (x *attempt) refuser(of string) doors.Refuser {
	said := new(atomic.Int32)
	return func(a decide.Ask, reason string) {
		a.Op, a.Kind = "connect", policy.KindSocket
		a.Exe, a.Cwd = program.Links(a.PID)
		if x.approvals != nil {
			x.approvals.arb.Refused(a, decide.Verdict{Errno: int(unix.EACCES), Reason: reason})
			return
		}
		_, _ = x.audit.w.Often(audit.Event{Kind: audit.KindDeny, UID: os.Getuid(), PID: a.PID, Exe: a.Exe, Cwd: a.Cwd,
			Op: a.Op, Path: a.Path, Decision: "deny", Reason: reason, Errno: "EACCES"})
		switch n := said.Add(1); {
		case x.r.Quiet || n > maxSaid:
		case n == maxSaid:
			x.b.Warn("blocked: further requests to " + of + "; sbx audit lists them, up to 100 a second")
		default:
			x.b.Warn("blocked: " + quoting.Quote(fmt.Sprintf("%.200s", path.Base(a.Path))) + " of " + of + " by " +
				report.Caller(uint32(a.PID)) + ": " + reason)
		}
	}
}

// maxSaid bounds what is printed of one filter where no arbiter counts.
const maxSaid = 100
