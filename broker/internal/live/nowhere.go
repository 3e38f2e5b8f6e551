//go:build linux

package live

import (
	"fmt"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/report"
)

// newNowhere tells of the names that a session without a network wants.
func (x *attempt) newNowhere() *egress.Nowhere {
	return &egress.Nowhere{Wanted: x.wanted, Failed: func(err error) { x.b.Warn(err.Error()) }}
}

// wanted tells of one: when it happens, in the summary, and on record.
func (x *attempt) wanted(q decide.Ask) {
	x.marked(func() int { return q.PID }, "a name that was looked up,", q.Host, q.Host)
	who := "a program"
	if q.Exe != "" {
		who = quoting.Quote(program.Name(q.Exe))
	}
	text := fmt.Sprintf("%s wants %s: %s; %s", who, quoting.Quote(q.Host), egress.NoNetwork, report.AllowNetwork)
	x.svc.programs.attribute(uint32(q.PID), text)
	if a := x.approvals; a != nil {
		a.arb.Refused(q, decide.Verdict{Reason: egress.NoNetwork})
		if !x.r.Quiet {
			a.arb.Queue().Tell(text)
		}
		return
	}
	x.refusals.Line(text, false)
	if !x.r.Quiet && !x.r.Verbose {
		x.b.say(x.in.TTY, text)
	}
}
