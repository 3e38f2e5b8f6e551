package live

import (
	"time"

	"sbx/broker/internal/egress"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
	"sbx/broker/internal/session"
)

// network is the one that r asks for.
func (b *Broker) network(r *run, s request.Settings, in *planner.Input, refused *blocked) (*egress.Network, error) {
	return egress.New(egress.Asked{Request: &r.Request, Dynamic: r.mode == "dynamic", Strict: r.strict, Env: b.Env,
		Maps: r.doors.IDs().NetworkMaps(), Refused: refused.line, Say: func(text string) {
			if !r.Quiet {
				b.Warn(text)
			}
		}}, s, in)
}

// reaches tells a session that asks what it need not ask about.
func (a *asking) reaches(o *egress.Network) {
	if a != nil && o != nil {
		a.rules.Env.Hosts, a.rules.Env.AllHosts = o.Reaches()
	}
}

// startNetwork opens the record of a session that has none for another reason, and connects the network's questions
// with whoever decides.
func startNetwork(o *egress.Network, s *session.Session, asks, a *asking, planHash string) error {
	switch {
	case o == nil:
		return nil
	case asks != nil:
		asks.outlet = o
		o.Start(asks.arb, asks.log)
		return nil
	case a.log != nil: // of the session's doors, which close it
		o.Start(nil, a.log)
		return nil
	}
	log, err := a.openLog(s, planHash, time.Time{})
	if err != nil {
		return &planner.Refusal{What: "starting the session's audit log", Err: err, Hint: session.RecordHint}
	}
	o.OwnLog(log)
	return nil
}
