//go:build linux

package live

import (
	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// network is the one that the run asks for.
func (x *attempt) network() (*egress.Network, error) {
	r := x.r
	return egress.New(egress.Asked{Request: &r.Request, Dynamic: r.mode == "dynamic", Labels: labels(x.cfg, x.in),
		Strict: r.strict, Env: x.b.Env,
		Served: x.credentials.Served(), Maps: r.doors.IDs().NetworkMaps(), Refused: x.refusals.Line,
		Marked: func(name string, by func() int) bool {
			x.credentials.Stray("a name that was looked up", name, name)
			return x.marked(by, "a name that was looked up,", name, name)
		},
		Sent: func(host, head string) { x.credentials.Stray("a request", host, head) },
		Say: func(text string) {
			if !r.Quiet {
				x.b.Warn(text)
			}
		}}, x.cfg, x.in)
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
