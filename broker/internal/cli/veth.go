package cli

import (
	"errors"

	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/shared/wire"
)

// netHelper finds the sbx-helper that makes the device of --net veth.
func netHelper(r *request) (string, error) {
	const instead = "leave --net away: pasta and slirp4netns need no privileges"
	if r.noSuid {
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
	var no *wire.Refusal
	if errors.As(err, &no) && no.Reason == wire.NotForwarding {
		return "as root: sysctl -w net.ipv4.ip_forward=1, or forwarding = true in /etc/sbx/helper.toml, which has sbx-helper do it; or leave --net away"
	}
	return "leave --net away: pasta and slirp4netns need no privileges"
}
