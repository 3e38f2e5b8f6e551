//go:build linux

package egress

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/request"
)

// settings are those that somebody wrote for the given keys.
func settings(n policy.Network, keys ...string) request.Settings {
	var s request.Settings
	s.Network, s.Origins = n, map[string][]policy.Origin{}
	for _, k := range keys {
		s.Origins[k] = []policy.Origin{{}}
	}
	return s
}

// TestRulesCloseEverybody: a rule about everybody holds although the network is allowed; of others, and of one about a
// port, nothing follows for the rest. What a rule asks about is refused where nobody is asked.
func TestRulesCloseEverybody(t *testing.T) {
	for _, c := range []struct {
		decision policy.Decision
		host     string
		closes   bool
		denied   [2]bool // where somebody asks, and where nobody does
	}{
		{policy.Deny, "*", true, [2]bool{true, true}},
		{policy.Ask, "*", true, [2]bool{false, true}},
		{policy.Allow, "*", false, [2]bool{}},
		{policy.Deny, "*:25", false, [2]bool{}},
		{policy.Deny, "a.test", false, [2]bool{true, true}},
		{policy.Ask, "a.test", false, [2]bool{false, true}},
		{policy.Deny, "a.test:443", false, [2]bool{}}, // the other port is left
	} {
		r, err := policy.NewRule(policy.Rule{Kind: policy.KindHost, Pattern: c.host, Decision: c.decision}, policy.Vars{})
		if err != nil {
			t.Fatal(err)
		}
		store := policy.Store{}.With(policy.ScopeUser, r)
		if got := store.ClosesAll(time.Now()); got != c.closes {
			t.Errorf("%v: closes everybody: %t", r, got)
		}
		for i, asks := range []bool{true, false} {
			if got := Denied(store.Match, peer.Host{Name: "a.test"}, 0, asks); got != c.denied[i] {
				t.Errorf("%v, asks: %t: denied: %t", r, asks, got)
			}
		}
	}
}

// TestReach: which hosts a run reaches, from what is written, and whether somebody can be asked about the rest.
func TestReach(t *testing.T) {
	hosts := []string{"example.org"}
	allowed := policy.Network{Mode: "auto", Allow: true, Hosts: hosts}
	option := []policy.Origin{{Scope: policy.ScopeSession}}
	words, files := settings(allowed), settings(allowed, "network.hosts")
	words.Origins["network.allow"], words.Origins["network.hosts"] = option, option
	files.Origins["network.allow"] = option
	for name, x := range map[string]struct {
		s       request.Settings
		dynamic bool
		want    policy.Reach
	}{
		"nothing": {settings(policy.Network{Mode: "auto"}), true, policy.NoHosts},
		"allowed": {settings(policy.Network{Mode: "auto", Allow: true}, "network.allow"), false,
			policy.AllHosts},
		"a list": {settings(policy.Network{Mode: "auto", Hosts: hosts}, "network.hosts"), false,
			policy.SomeHosts},
		"an empty list": {settings(policy.Network{Mode: "auto", Hosts: []string{}}, "network.mode"),
			true, policy.NoHosts},
		"asked for":     {settings(policy.Network{Mode: "pasta"}, "network.mode"), true, policy.SomeHosts},
		"nobody to ask": {settings(policy.Network{Mode: "pasta"}, "network.mode"), false, policy.NoHosts},
		"forbidden": {settings(policy.Network{Mode: "none", Hosts: hosts}, "network.mode"), true,
			policy.NoHosts},
		"both words":      {words, false, policy.AllHosts},
		"a list of files": {files, false, policy.SomeHosts},
	} {
		got, _ := x.s.Reach(x.dynamic)
		if got != x.want {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}

// TestNoNetworkIsMade: who asked for nothing gets no network, and neither does who forbids it with ports listed.
func TestNoNetworkIsMade(t *testing.T) {
	for name, s := range map[string]request.Settings{
		"nothing": settings(policy.Network{Mode: "auto"}),
		"forbidden": settings(policy.Network{Mode: "none", HostPorts: []int{5432}, Publish: []string{"8080"}},
			"network.mode"),
	} {
		in := &planner.Input{}
		n, err := New(Asked{Request: &request.Request{}}, s, in)
		if n != nil || err != nil || in.JoinNet {
			t.Errorf("%s: %v %v", name, n, err)
		}
	}
}

func TestCarrier(t *testing.T) {
	for _, x := range []struct {
		mode  string
		reach policy.Reach
		want  string
	}{{"auto", policy.SomeHosts, ""}, {"pasta", policy.AllHosts, "pasta"}, {"veth", policy.NoHosts, "none"},
		{"auto", policy.NoHosts, "none"}} {
		if got := carrier(x.mode, x.reach); got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

// TestImplied: only a network that nobody but the profile asked for may be left out where it cannot be had.
func TestImplied(t *testing.T) {
	if !implied(settings(policy.Network{})) {
		t.Error("a profile's network is said to be asked for")
	}
	for _, s := range []request.Settings{settings(policy.Network{}, "network.allow"),
		settings(policy.Network{}, "network.hosts"), settings(policy.Network{}, "network.mode"),
		settings(policy.Network{Publish: []string{"8080"}}), settings(policy.Network{HostPorts: []int{80}})} {
		if implied(s) {
			t.Errorf("%+v is said to be the profile's", s.Network)
		}
	}
}

func rule(t *testing.T, pattern string, d policy.Decision, o policy.Scope, expires time.Time) policy.Rule {
	t.Helper()
	r, err := policy.NewRule(policy.Rule{Kind: policy.KindHost, Pattern: pattern, Decision: d, Expires: expires,
		Origin: policy.Origin{Scope: o}}, policy.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAllowedByRules: a host is reached by a rule while that allows it, and by a project's only where it is trusted.
func TestAllowedByRules(t *testing.T) {
	now := time.Now()
	store := policy.Store{}.With(policy.ScopeUser, rule(t, "user.example", policy.Allow, policy.ScopeUser, time.Time{}),
		rule(t, "over.example", policy.Allow, policy.ScopeUser, now.Add(-time.Second)),
		rule(t, "still.example", policy.Allow, policy.ScopeUser, now.Add(time.Hour)),
		rule(t, "denied.example", policy.Deny, policy.ScopeUser, time.Time{}),
	).With(policy.ScopeProject, rule(t, "project.example", policy.Allow, policy.ScopeProject, time.Time{}))
	for trusted, want := range map[bool][]string{false: {"still.example", "user.example"},
		true: {"project.example", "still.example", "user.example"}} {
		store.ProjectTrusted = trusted
		var got []string
		for _, p := range allowedByRules(store, now) {
			for _, name := range []string{"user", "over", "still", "denied", "project"} {
				if h, err := peer.Parse(name + ".example"); err == nil && p.Match(h, 443, false) {
					got = append(got, name+".example")
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("trusted %v: %q, want %q", trusted, got, want)
		}
	}
}

// TestDenied: a name for which no port is known yet is refused only if a rule denies it at both usual ports.
func TestDenied(t *testing.T) {
	all := policy.Store{}.With(policy.ScopeUser, rule(t, "all.example", policy.Deny, policy.ScopeUser, time.Time{}),
		rule(t, "tls.example:443", policy.Deny, policy.ScopeUser, time.Time{}))
	for _, x := range []struct {
		host string
		port int
		want bool
	}{{"all.example", 443, true}, {"all.example", 0, true}, {"tls.example", 443, true}, {"tls.example", 0, false},
		{"tls.example", 80, false}, {"other.example", 443, false}} {
		h, err := peer.Parse(x.host)
		if err != nil {
			t.Fatal(err)
		}
		if got := Denied(all.Match, h, x.port, true); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// TestProxies: a proxy is passed on where it may be reached, and never with a password.
func TestProxies(t *testing.T) {
	for name, x := range map[string]struct {
		value string
		all   bool
		hosts []string
		ports []int
		want  bool
	}{
		"everything is open":   {"http://proxy.example:3128", true, nil, nil, true},
		"listed":               {"http://proxy.example:3128", false, []string{"proxy.example:3128"}, nil, true},
		"listed at a port":     {"http://proxy.example:3128", false, []string{"proxy.example:443"}, nil, false},
		"not listed":           {"http://proxy.example:3128", false, nil, nil, false},
		"with a password":      {"http://me:secret@proxy.example:3128", true, nil, nil, false},
		"the host's":           {"http://127.0.0.1:3128", true, nil, nil, false},
		"the host's, let in":   {"http://127.0.0.1:3128", false, nil, []int{3128}, true},
		"without a port":       {"http://proxy.example", true, nil, nil, false},
		"no address":           {"proxy", true, nil, nil, false},
		"an address, all open": {"http://192.0.2.7:3128", true, nil, nil, true},
	} {
		o := &Network{by: Asked{Env: []string{"https_proxy=" + x.value, "no_proxy=.local"}}, opt: network.Options{All: x.all}}
		if err := o.list(x.hosts, policy.Store{}); err != nil {
			t.Fatal(err)
		}
		in := &planner.Input{}
		o.proxies(settings(policy.Network{HostPorts: x.ports}), in)
		if got := slices.Contains(in.Env, "https_proxy="+x.value); got != x.want {
			t.Errorf("%s: %q", name, in.Env)
		}
		if got := slices.Contains(in.Env, "no_proxy=.local"); got != x.want {
			t.Errorf("%s: no_proxy without a proxy, or the other way round: %q", name, in.Env)
		}
		if strings.Contains(strings.Join(in.Env, " "), "secret") {
			t.Errorf("%s: %q", name, in.Env)
		}
	}
}

// TestListRefuses: what cannot be meant is refused and named.
func TestListRefuses(t *testing.T) {
	for name, x := range map[string]struct {
		all  bool
		host string
		want string
	}{
		"not a host":             {false, "not a host", "not a host"},
		"a name in an open list": {true, "a.example:443,tls=sni", "means nothing while every address is open"},
	} {
		o := &Network{opt: network.Options{All: x.all}}
		if err := o.list([]string{x.host}, policy.Store{}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNsswitch: names are looked up in files and by DNS inside, whatever the host has; the rest is the host's.
func TestNsswitch(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "hosts: files dns\n",
		"passwd: files\n":                       "passwd: files\nhosts: files dns\n",
		"hosts: mymachines resolve\nnet: files": "hosts: files dns\nnet: files",
		"  hosts:\tdb\n":                        "hosts: files dns\n",
		"#hosts: db\n":                          "#hosts: db\nhosts: files dns\n",
	} {
		if got := nsswitchText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestRulesOfTheOrganisationAboutAddresses: an option for what the organisation denies altogether is refused; one that
// is about more, and what another denies, begins.
func TestRulesOfTheOrganisationAboutAddresses(t *testing.T) {
	for _, x := range []struct {
		scope            policy.Scope
		rule, host, want string
	}{
		{policy.ScopeOrg, "192.0.2.2", "192.0.2.2:99", "is refused by the organisation: deny connect 192.0.2.2"},
		{policy.ScopeOrg, "192.0.2.0/24:99", "192.0.2.0/25:99",
			"is refused by the organisation: deny connect 192.0.2.0/24:99"},
		{policy.ScopeOrg, "192.0.2.0", "192.0.2.0/24:99", ""}, {policy.ScopeOrg, "192.0.2.2:98", "192.0.2.2:99", ""},
		{policy.ScopeUser, "192.0.2.2", "192.0.2.2:99", ""}, {policy.ScopeOrg, "0.0.0.0/0:443", "192.0.2.0/24", ""},
		{policy.ScopeOrg, "0.0.0.0/0:99", "192.0.2.0/24:99-100", ""},
		{policy.ScopeOrg, "0.0.0.0/0:443", "192.0.2.0/24/icmp", ""},
		{policy.ScopeOrg, "0.0.0.0/0:80-443", "192.0.2.0/24", "is refused by the organisation"},
	} {
		store := policy.Store{}.With(x.scope, rule(t, x.rule, policy.Deny, x.scope, time.Time{}))
		o := &Network{by: Asked{Request: &request.Request{AllowHosts: []string{x.host}}}}
		err := o.list([]string{x.host}, store)
		if (err != nil) != (x.want != "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// TestRulesThatEnd: in a static session a rule that ends is a loss, and one that does not, or has ended, is none.
func TestRulesThatEnd(t *testing.T) {
	now := time.Now()
	store := policy.Store{}.With(policy.ScopeUser,
		rule(t, "soon.example", policy.Allow, policy.ScopeUser, now.Add(time.Hour)),
		rule(t, "192.0.2.1", policy.Allow, policy.ScopeUser, now.Add(time.Minute)),
		rule(t, "ended.example", policy.Allow, policy.ScopeUser, now.Add(-time.Hour)),
		rule(t, "always.example", policy.Allow, policy.ScopeUser, time.Time{}),
		rule(t, "no.example", policy.Deny, policy.ScopeUser, now.Add(time.Hour)))
	var in planner.Input
	ending(store, now, &in)
	if len(in.Losses) != 2 || !strings.Contains(in.Losses[0].What, "soon.example") ||
		!strings.Contains(in.Losses[1].What, "192.0.2.1") || !strings.Contains(in.Losses[0].Why, "when the rule has ended") {
		t.Errorf("%+v", in.Losses)
	}
	if end := nextEnd(store.InForce(), now); !end.Equal(now.Add(time.Minute)) {
		t.Errorf("it is looked again at %v", end)
	}
}
