//go:build linux

package egress

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// keepAccepting leaves of what is reachable only who may hear of the labels that the session carries from the start:
// nobody is asked here. The rest is a loss.
func (o *Network) keepAccepting(store policy.Store, in *planner.Input) {
	if len(in.Labels) == 0 {
		return
	}
	var labels, places []string
	for _, l := range in.Labels {
		labels, places = append(labels, l.Name), append(places, l.Place)
	}
	var unheard []string
	now := time.Now()
	hears := func(text string) bool {
		p, err := peer.ParsePattern(text)
		if err == nil && store.Hears(p, labels, now) {
			return true
		}
		if !slices.Contains(unheard, text) {
			unheard = append(unheard, text)
		}
		return false
	}
	if o.opt.All {
		o.opt.All = false
		unheard = append(unheard, "every host")
	}
	door := func(port uint16) string { return network.DoorHost + ":" + strconv.Itoa(int(port)) }
	o.opt.Hosts = slices.DeleteFunc(o.opt.Hosts, func(p peer.Pattern) bool { return !hears(p.String()) })
	o.opt.HostPorts = slices.DeleteFunc(o.opt.HostPorts, func(port uint16) bool { return !hears(door(port)) })
	o.opt.Publish = slices.DeleteFunc(o.opt.Publish, func(p network.Publish) bool { return !hears(door(p.Host.Port())) })
	if len(unheard) > 0 {
		in.Losses = append(in.Losses, planner.Loss{What: "contact with " + strings.Join(unheard, ", "),
			Why: "this run shows " + strings.Join(places, ", ") + ", labelled " + strings.Join(labels, ", ") +
				", which it may not hear of, and static mode asks nobody",
			Fix: "accepts in the host's rule lets it hear (docs/labels.md)"})
	}
}
