package policy

import (
	"slices"
	"time"

	"sbx.example/sbx/broker/internal/policy/peer"
)

// Reach is what [network] comes down to.
type Reach int

// Reaches from nothing to everything.
const (
	NoHosts Reach = iota
	SomeHosts
	AllHosts
)

// Reach is what can be reached, and the hosts that are listed. asks says whether somebody can be asked: then a network
// that is asked for with nothing listed reaches what is answered.
func (e Effective) Reach(asks bool) (Reach, []string) {
	reach, hosts := e.listed()
	switch {
	case reach == SomeHosts && e.bothWords():
		reach = AllHosts
	case reach == NoHosts && asks && e.Network.Mode != "none" && len(e.Origins["network.mode"]) > 0 &&
		(e.Network.Hosts == nil || len(e.Network.Hosts) > 0):
		reach = SomeHosts
	}
	return reach, hosts
}

// listed combines network.allow and network.hosts with the profile: what the files leave out the profile says, an empty
// list of hosts is none even where everything is allowed, a list alone allows just that.
func (e Effective) listed() (Reach, []string) {
	allow, hosts := e.Network.Allow, e.Network.Hosts
	_, locked := e.Locked["network.allow"]
	said := len(e.Origins["network.allow"]) > 0
	if !said && !locked {
		allow = e.Profile.Network
	}
	if hosts == nil {
		hosts = e.Profile.Hosts
	}
	switch {
	case e.Network.Mode == "none", hosts != nil && len(hosts) == 0:
		return NoHosts, nil
	case hosts != nil && (allow || !said): // a list stands for itself unless somebody wrote network.allow = false
		return SomeHosts, hosts
	case allow && hosts == nil:
		return AllHosts, nil
	}
	return NoHosts, nil
}

// bothWords says whether the command line has --allow-network beside hosts that nobody lists but itself and an agent:
// then everything public is open, and beyond it what is named.
func (e Effective) bothWords() bool {
	by := e.Origins["network.allow"]
	if _, locked := e.Locked["network.hosts"]; locked || e.Network.Hosts == nil { // the profile lists them
		return false
	}
	return e.Network.Allow && len(by) > 0 && by[len(by)-1].Scope == ScopeSession &&
		!slices.ContainsFunc(e.Origins["network.hosts"], func(o Origin) bool { return o.Scope != ScopeSession })
}

// ClosesAll says whether a rule denies or asks about everybody of whom no other rule says something: then not every
// address is open, but what is listed.
func (s Store) ClosesAll(now time.Time) bool {
	return slices.ContainsFunc(s.InForce(), func(r Rule) bool {
		if port, _ := r.host.Ports(); r.Kind != KindHost || !r.host.Any() || port != 0 {
			return false
		}
		hit, ok := s.Match(Query{Kind: KindHost, Host: peer.Host{Name: "everybody.invalid"}, Port: 443, Access: Connect,
			Now: now})
		return ok && hit.Decision != Allow
	})
}

// reached is a reach with its list.
type reached struct {
	reach Reach
	hosts []string
}

func (e Effective) reached(asks bool) reached {
	reach, hosts := e.Reach(asks)
	return reached{reach, hosts}
}

// holds says whether all can be reached that a pattern is about.
func (r reached) holds(p peer.Pattern) bool {
	if _, address := p.Prefix(); r.reach == AllHosts && !address { // an address could be one of those that are closed
		return true
	}
	return slices.ContainsFunc(r.hosts, func(h string) bool { return covers(tHosts, h, p.String()) })
}

// exceeds says whether more can be reached than with o.
func (r reached) exceeds(o reached) bool {
	return r.reach > o.reach || r.reach == SomeHosts && o.reach == SomeHosts && len(r.hosts) > 0 &&
		!covered(tHosts, o.hosts, r.hosts, covers)
}

// widenedHosts is the final key of the network that a rule about a host would widen, and where that is so; "" for none.
func (e Effective) widenedHosts(p peer.Pattern) (key string, lock Origin) {
	if lock, locked := e.Locked["network.hosts"]; locked && !e.reached(false).holds(p) {
		return "network.hosts", lock
	}
	if lock, locked := e.Locked["network.allow"]; locked && e.closed.reach.reach != AllHosts && !e.closed.reach.holds(p) {
		return "network.allow", lock
	}
	return "", Origin{}
}

// reopensHosts is network.allow where that is final and more can be reached than by the organisation's files; "" else.
func (e Effective) reopensHosts() string {
	const key = "network.allow"
	if _, locked := e.Locked[key]; locked && e.reached(true).exceeds(e.closed.asked) {
		return key
	}
	return ""
}

// finalNetwork has network.allow stand at its default where the organisation makes it final without a value and lists
// no host: as if that were written.
func (m *merger) finalNetwork() {
	const key = "network.allow"
	lock, locked := m.e.Locked[key]
	if reach, _ := m.e.listed(); locked && reach == NoHosts && len(m.e.Origins[key]) == 0 {
		m.e.Origins[key] = []Origin{lock}
	}
}
