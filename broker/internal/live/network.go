package live

import (
	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/request"
)

// network is the one that r asks for.
func (b *Broker) network(r *run, s request.Settings, in *planner.Input, refused *refusals,
	served *network.Served) (*egress.Network, error) {
	return egress.New(egress.Asked{Request: &r.Request, Dynamic: r.mode == "dynamic", Labels: labels(s), Strict: r.strict,
		Env:    b.Env,
		Served: served, Maps: r.doors.IDs().NetworkMaps(), Refused: refused.line, Say: func(text string) {
			if !r.Quiet {
				b.Warn(text)
			}
		}}, s, in)
}

// reaches tells a session that asks what it need not ask about.
func (a *approvals) reaches(o *egress.Network) {
	if a == nil || o == nil {
		return
	}
	a.rules.Env.Hosts, a.rules.Env.AllHosts = o.Reaches()
	if a.rules.Labels { // these are decided about as well
		for _, to := range append(a.credentials.Servers(), o.Doors()...) {
			if p, err := peer.ParsePattern(to.String()); err == nil {
				a.rules.Env.Hosts = append(a.rules.Env.Hosts, p)
			}
		}
	}
}

// startNetwork opens the record of a session that has none for another reason, and connects the network's questions
// with whoever decides.
func (x *attempt) startNetwork(planHash string, init int) error {
	switch {
	case x.net == nil:
		return nil
	case x.approvals != nil:
		x.approvals.network = x.net
		x.net.Start(x.approvals.arb, x.approvals.log, init)
		return nil
	case x.audit.w != nil: // of the session's doors, which close it
		x.net.Start(nil, x.audit.w, init)
		return nil
	}
	if err := x.audit.open(planHash); err != nil {
		return err
	}
	x.net.OwnLog(x.audit.w, init)
	return nil
}
