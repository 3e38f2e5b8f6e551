//go:build linux

package credential

import (
	"net"
	"strconv"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// bound is an error where one of the sites behind the first ones is a host that nobody but the organisation may open,
// and another's table, by, names it.
func (g *Grants) bound(s request.Settings, first int, what string, by policy.Origin) error {
	for _, site := range g.sites[first:] {
		to := net.JoinHostPort(site.Host, strconv.Itoa(int(site.Port)))
		r, err := policy.NewRule(policy.Rule{Kind: policy.KindHost, Pattern: to, Decision: policy.Allow, Origin: by},
			policy.Vars{})
		if err != nil {
			return &planner.Refusal{What: what + " (" + by.String() + ")", Err: err}
		}
		if key, lock := s.Widened(r); key != "" {
			return &planner.Refusal{What: what + " (" + by.String() + ") goes to " + quoting.Quote(to) + ", and " +
				lock.String() + " has made " + key + " final",
				Hint: "the administrator of this machine decides it; sbx config show says what holds"}
		}
	}
	return nil
}
