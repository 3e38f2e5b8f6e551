//go:build linux

package credential

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
)

// TestFinalHolds: where the organisation has made final what is reached, no credential or endpoint of anybody else's
// reaches more.
func TestFinalHolds(t *testing.T) {
	vars := policy.Vars{Home: "/home/x", Project: "/home/x/p", TmpDir: "/tmp", XDGConfigHome: "/home/x/.config",
		XDGDataHome: "/home/x/.local/share", XDGStateHome: "/home/x/.local/state", XDGCacheHome: "/home/x/.cache"}
	for name, x := range map[string]struct {
		org     string // its settings
		by      policy.Scope
		refused string
	}{
		"nothing is final":   {"", policy.ScopeUser, ""},
		"the network":        {"final = [\"network.allow\"]\n", policy.ScopeUser, "has made network.allow final"},
		"its own credential": {"final = [\"network.allow\"]\n", policy.ScopeOrg, ""},
		"a host of its list": {"final = [\"network.hosts\"]\n[network]\nhosts = [\"a.test\", \"b.test\"]\n",
			policy.ScopeUser, ""},
		"another host": {"final = [\"network.hosts\"]\n[network]\nhosts = [\"a.test\"]\n", policy.ScopeUser,
			"has made network.hosts final"},
		"another port": {"final = [\"network.allow\"]\n[network]\nhosts = [\"a.test\", \"b.test:22\"]\n",
			policy.ScopeUser, "has made network.allow final"},
		"all is open": {"final = [\"network.allow\"]\n[network]\nallow = true\n", policy.ScopeUser, ""},
	} {
		org, err := policy.ParseConfig([]byte(x.org), "/etc/sbx/config.toml", policy.ScopeOrg, vars)
		if err != nil {
			t.Fatal(name, err)
		}
		e, err := policy.Merge(policy.Layers{Org: org, Vars: vars}, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		s, by := request.Settings{Effective: e}, policy.Origin{Scope: x.by, File: "config.toml"}
		g := grants(policy.Credential{Name: "c", Hosts: []string{"b.test"}})
		err = g.add("c", "--with", &planner.Input{})
		if err == nil {
			err = g.addEndpoint(policy.Endpoint{Name: "e", URL: "https://b.test/v1"}, &planner.Input{})
		}
		if err != nil || len(g.sites) != 2 {
			t.Fatal(name, err, g.sites)
		}
		for first := range g.sites { // the endpoint is behind the credential
			err := g.bound(s, first, "it", by)
			if (err == nil) != (x.refused == "") || err != nil && !strings.Contains(err.Error(), x.refused) {
				t.Errorf("%s, from %d: %v", name, first, err)
			}
		}
	}
}
