package policy

import (
	"slices"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy/peer"
)

// TestFinalNetwork: what the organisation lets be reached where network.allow or network.mode is final is all that
// settings, options and rules of others reach, whether the key has a value or stands at its default. As controls the
// same without the lock, and what the organisation lists itself.
func TestFinalNetwork(t *testing.T) {
	const host = "b.test"
	const profile = "[profiles.mine]\nnetwork = true\nhosts = [\"b.test\"]\n[sandbox]\nprofile = \"mine\"\n"
	for _, c := range []struct {
		final, org, user string
		flag             string
		value            any
		free, held       Reach // without the lock, and with it
		said             bool  // that something is ignored
	}{
		{"network.allow", "allow = false", "[network]\nmode = \"auto\"\n", "", nil, SomeHosts, NoHosts, true},
		{"network.allow", "allow = false", "", "network.mode", "auto", SomeHosts, NoHosts, true},
		{"network.allow", "", "[network]\nmode = \"pasta\"\n", "", nil, SomeHosts, NoHosts, true},
		{"network.allow", "", "[network]\nhosts = [\"b.test\"]\n", "", nil, SomeHosts, NoHosts, false},
		{"network.allow", "", profile, "", nil, SomeHosts, NoHosts, false},
		{"network.allow", "", "", "network.allow", true, AllHosts, NoHosts, true},
		{"network.allow", "hosts = [\"a.test\"]", "[network]\nhosts = [\"b.test\"]\n", "", nil, SomeHosts, SomeHosts, true},
		{"network.allow", "hosts = [\"a.test\"]", "", "network.hosts", []string{"b.test"}, SomeHosts, SomeHosts, true},
		{"network.mode", "mode = \"none\"", "", "network.mode", "auto", SomeHosts, NoHosts, true},
		{"network.mode", "", "", "network.mode", "auto", SomeHosts, NoHosts, true},
		{"network.allow", "allow = true", "[network]\nmode = \"pasta\"\n", "", nil, AllHosts, AllHosts, false},
	} {
		for _, final := range []bool{false, true} {
			w := newWorld(t)
			org, want := "[network]\n"+c.org+"\n", c.free
			if final {
				org, want = "final = [\""+c.final+"\"]\n"+org, c.held
			}
			w.write(ScopeOrg, "config.toml", org)
			w.write(ScopeUser, "config.toml", c.user)
			w.write(ScopeUser, "policy.toml", "[[rule]]\nhost = \""+host+"\"\ndecision = \"allow\"\n")
			var flags []Setting
			if c.flag != "" {
				s, err := Flag(c.flag, "--flag", c.value, w.Vars)
				if err != nil {
					t.Fatal(err)
				}
				flags = append(flags, s)
			}
			e := w.merge(flags...)
			reach, hosts := e.Reach(true)
			if reach != want || final && slices.Contains(hosts, host) {
				t.Errorf("%+v, final: %t: reach %v %q", c, final, reach, hosts)
			}
			if said := slices.ContainsFunc(e.Notices, func(n Notice) bool { return n.Kind == NoticeLocked }); said !=
				(final && c.said) {
				t.Errorf("%+v, final: %t: notices %v", c, final, e.Notices)
			}
			layers, err := Load(w.Sources)
			if err != nil {
				t.Fatal(err)
			}
			store, _ := e.Bound(layers.Policy)
			_, counts := store.Match(Query{Kind: KindHost, Host: peer.Host{Name: host}, Port: 443, Access: Connect,
				Now: time.Now()})
			if counts != (!final || c.held == AllHosts || c.final == "network.mode") { // without a network it opens nothing
				t.Errorf("%+v, final: %t: the rule counts: %t", c, final, counts)
			}
		}
	}
}
