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

// TestAllNamesOpenNoAddress: beside a list that says * no file, option or rule opens an address of the host's or of a
// private network as if that were narrower. What is a name is.
func TestAllNamesOpenNoAddress(t *testing.T) {
	const everybody = "[network]\nhosts = [\"*\"]\n"
	for host, narrower := range map[string]bool{"b.test": true, "*.b.test": true, "169.254.169.254": false,
		"10.0.0.0/8": false, "[::1]:80": false} {
		pattern, err := peer.ParsePattern(host)
		if err != nil {
			t.Fatal(err)
		}
		listed := func(e Effective) bool { _, hosts := e.Reach(false); return slices.Contains(hosts, host) }
		w, list := newWorld(t), "[network]\nhosts = [\""+host+"\"]\n"
		flag, err := Flag("network.hosts", "--allow-host", []string{host}, w.Vars)
		if err != nil {
			t.Fatal(err)
		}
		w.write(ScopeOrg, "config.toml", "final = [\"network.hosts\"]\n"+everybody)
		if got := listed(w.merge(flag)); got != narrower {
			t.Errorf("%s, beside a final list: by an option: %t", host, got)
		}
		if key, _ := w.merge().widenedHosts(pattern); (key == "") != narrower {
			t.Errorf("%s, beside a final list: a rule widens %q", host, key)
		}
		w.write(ScopeUser, "config.toml", list)
		if got := listed(w.merge()); got != narrower {
			t.Errorf("%s, beside a final list: by a file: %t", host, got)
		}
		w.write(ScopeOrg, "config.toml", everybody) // the control
		if !listed(w.merge()) || !listed(w.merge(flag)) {
			t.Errorf("%s is not listed where nothing is final", host)
		}
		w.write(ScopeOrg, "config.toml", "")
		w.write(ScopeUser, "config.toml", "[sandbox]\nprofile = \"n\"\n[profiles.n]\nhosts = [\"*\"]\n")
		w.write(ScopeProject, "config.toml", list)
		if listed(w.merge()) && !narrower {
			t.Errorf("%s, by a project that is not trusted, beside the user's profile", host)
		}
	}
}
