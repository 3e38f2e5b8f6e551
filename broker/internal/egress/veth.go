//go:build linux

package egress

import (
	"errors"
	"slices"

	"sbx.example/sbx/broker/internal/helperclient"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/shared/wire"
)

// netHelper finds the sbx-helper that makes the device of --net veth.
func netHelper(r *request.Request) (string, error) {
	const instead = "leave --net away: pasta and slirp4netns need no privileges"
	if r.NoSuid {
		return "", &planner.Refusal{What: "--net veth needs sbx-helper, which --no-suid forbids", Hint: instead}
	}
	file, err := launch.FindNetHelper()
	if err != nil {
		return "", &planner.Refusal{What: "--net veth needs sbx-helper", Err: err, Hint: instead}
	}
	return file, nil
}

// vethHint says what an administrator can do.
func vethHint(err error) string {
	var no *helperclient.Refusal
	if errors.As(err, &no) && no.Reason == wire.NotForwarding {
		return "as root: sysctl -w net.ipv4.ip_forward=1, or forwarding = true in /etc/sbx/helper.toml, which has " +
			"sbx-helper do it; or leave --net away"
	}
	return "leave --net away: pasta and slirp4netns need no privileges"
}

// withIPv6 names as a loss that nothing carries IPv6 beside the helper's device, where that matters: where the host has
// it or the list names it.
func withIPv6(o *network.Options, in *planner.Input) {
	_, err := network.IPv6BesideVeth(o.Programs)
	listed := slices.ContainsFunc(o.Hosts, func(h peer.Pattern) bool {
		p, ok := h.Prefix()
		return ok && p.Addr().Is6()
	})
	switch {
	case err == nil || errors.Is(err, network.ErrNoIPv6) && !listed:
		return
	}
	in.Losses = append(in.Losses, planner.Loss{What: "IPv6",
		Why: "the device of --net veth carries IPv4 only, and beside it " + err.Error(),
		Fix: "install pasta (package passt), which carries it beside the device"})
}
