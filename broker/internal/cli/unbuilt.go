package cli

import "sbx/broker/internal/planner"

// unbuilt says which settings somebody made that this version does not carry out. Nothing becomes weaker
// by them: the network stays off, what is not granted stays refused; but it must not be silent.
func unbuilt(s settings) []planner.Loss {
	var out []planner.Loss
	add := func(what, why, fix string) { out = append(out, planner.Loss{What: what, Why: why, Fix: fix}) }
	set := func(key string) bool { return len(s.Origins[key]) > 0 }
	if s.Profile.Network || set("network.allow") && s.Network.Allow || len(s.Network.Hosts) > 0 || len(s.Network.Publish) > 0 {
		add("network", "this version gives none, only a loopback of the sandbox's own", "")
	}
	f := s.Features
	for key, on := range map[string]bool{"containers": f.Containers, "nix": f.Nix} {
		if on {
			add("features."+key, "this version does not have it ("+s.origin("features."+key)+")", "")
		}
	}
	return out
}
