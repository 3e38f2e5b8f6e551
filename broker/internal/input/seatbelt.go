package input

import (
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
)

// Seatbelt turns the request, the configuration and the facts into what planner.BuildPlaced takes: the view of Make,
// and none of its doors, which all stand in a mount or in a network of the sandbox's own.
func (r *Run) Seatbelt(s request.Settings, facts host.Facts) (*planner.Input, error) {
	if err := r.doorless(s); err != nil {
		return nil, err
	}
	in, err := r.begin(s, facts)
	if err != nil {
		return nil, err
	}
	if err = r.view(s, in); err != nil {
		return nil, err
	}
	if err = r.environment(s, in, facts); err != nil {
		return nil, err
	}
	r.showToolConfs(s, in)
	reach, _ := s.Reach(false)
	in.Placed, in.ShareNet, in.Asks = true, reach == policy.AllHosts, r.Asks
	return in, in.Refer(r.Env)
}

// doorless refuses what is let in by doors, or held back by them.
func (r *Run) doorless(s request.Settings) error {
	reach, _ := s.Reach(false)
	f := s.Features
	var asked []string
	for _, x := range [...]struct {
		on   bool
		what string
	}{{reach == policy.SomeHosts, "a network of some hosts only (network.hosts)"}, {f.Nested, "--nested"},
		{f.Containers, "--containers"}, {f.VM, "--vm"}, {f.KVM, "--allow-kvm"}, {f.Nix, "--nix"},
		{f.SSHAgent, "--ssh-agent"}, {f.GPGAgent, "--gpg-agent"}, {f.Wayland, "--wayland"}, {f.X11, "--x11"},
		{f.DBus, "--dbus"}, {len(f.Sockets) > 0, "--socket"}, {len(f.Stores) > 0, "a store"},
		{len(s.Network.Publish) > 0, "--publish"}, {r.OnlyNamed(s), "--only or --untrusted"}, {r.Ephemeral, "--ephemeral"},
		{r.Learn != "", "--learn"}, {len(s.Network.With) > 0, "--with"}} {
		if x.on {
			asked = append(asked, x.what)
		}
	}
	if len(asked) > 0 {
		return planner.NotPlaced(strings.Join(slices.Compact(asked), ", "))
	}
	return nil
}
