//go:build linux

package live

import (
	"slices"

	"sbx.example/sbx/broker/internal/credential"
	"sbx.example/sbx/broker/internal/egress"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/session"
)

// grantCredentials grants what --with names. Where the sandbox has no network of its own it is a loss, and inside is
// nothing.
func (x *attempt) grantCredentials() (err error) {
	if x.r.helper != nil {
		if len(x.cfg.Network.With) > 0 {
			x.in.Losses = append(x.in.Losses, planner.Loss{What: "credentials",
				Why: "what puts them into requests takes a network of the sandbox's own, which takes user namespaces"})
		}
		return nil
	}
	x.credentials, err = credential.New(credential.Caller{Env: x.b.Env, Warn: x.b.Warn, Refused: x.refusals.Line,
		Asks: labels(x.cfg, x.in) && x.approvals != nil,
		Sets: x.sets, Record: x.r.Record, Marks: x.marks(), Marked: x.inRequest,
		Denied: func(h peer.Host, port int) bool {
			return egress.Denied(x.cfg.Layers.Policy.Match, h, port, x.approvals != nil)
		}}, x.cfg, x.in)
	x.r.credentials = x.credentials.Names()
	if err != nil || !labels(x.cfg, x.in) {
		return err
	}
	if x.approvals != nil {
		x.approvals.credentials, x.approvals.rules.Own = x.credentials, x.credentials.Own
		return nil
	}
	return x.credentials.Heard(x.cfg, x.in, opens(x.cfg))
}

// sets says whether a person or a setting gives the program a variable by its name.
func (x *attempt) sets(variable string) bool {
	_, set := x.cfg.Env.Set[variable]
	return set || slices.Contains(x.cfg.Env.Pass, variable) || x.r.Given(variable)
}

// recordCredentials has their use written to the record that the network has opened.
func (x *attempt) recordCredentials() error {
	log := x.audit.w
	a := x.approvals
	if a != nil {
		log = a.log
	}
	if err := x.credentials.Record(log); err != nil {
		return &planner.Refusal{What: "writing the session's audit log", Err: err, Hint: session.RecordHint}
	}
	if a != nil && a.rules.Labels {
		x.credentials.Decide(a.request)
	}
	return nil
}
