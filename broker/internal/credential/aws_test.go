//go:build linux

package credential

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
)

// What stands for an access key has the form that tools expect, is another one in each session, and every key is a
// profile of its name. What the caller has of another key is not inside.
func TestAccessKeys(t *testing.T) {
	hosts := []string{"s3.test", "b.s3.test:8443"}
	list := []policy.Credential{
		{Name: "github", Hosts: hosts, AWSSigV4: []string{"sts", "s3/eu-west-1"}}, // no kind, whatever it is called
		{Name: "work", Hosts: hosts, AWSSigV4: []string{"es"}},
	}
	seen := map[string]bool{}
	for range 3 {
		g, in := grants(list...), &planner.Input{Env: []string{"AWS_SESSION_TOKEN=REAL", "AWS_PROFILE=REAL",
			"AWS_SECRET_ACCESS_KEY=REAL", "AWS_REGION=x"}}
		for _, c := range list {
			if err := g.add(c.Name, "--with", in); err != nil {
				t.Fatal(err)
			}
		}
		g.showFiles(in)
		a, b := g.list[0], g.list[1]
		for _, x := range g.list {
			if seen[x.placeholder] || seen[x.key] || !regexp.MustCompile("^AKIASBX[A-Z2-7]{13}$").MatchString(x.placeholder) ||
				!regexp.MustCompile("^sbx-placeholder-[a-z2-7]{24}$").MatchString(x.key) {
				t.Errorf("%q %q", x.placeholder, x.key)
			}
			seen[x.placeholder], seen[x.key] = true, true
		}
		for name, want := range map[string]string{"AWS_ACCESS_KEY_ID": b.placeholder, "AWS_SECRET_ACCESS_KEY": b.key,
			"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
			"AWS_SHARED_CREDENTIALS_FILE": "/run/sbx/aws/credentials", "GITHUB_TOKEN": ""} {
			if got := host.Lookup(in.Env, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		want := "[github]\naws_access_key_id = " + a.placeholder + "\naws_secret_access_key = " + a.key +
			"\nregion = eu-west-1\n[work]\naws_access_key_id = " + b.placeholder +
			"\naws_secret_access_key = " + b.key + "\n"
		if len(in.Copies) != 1 || in.Copies[0].Text.Text != want || strings.Contains(in.Copies[0].Text.Name, "/") {
			t.Errorf("%+v", in.Copies)
		}
		conf := g.configuration(network.Addresses{})
		if s := conf.Secrets[0]; s.Key != a.key || s.Placeholder != a.placeholder ||
			!slices.Equal(s.Scopes, list[0].AWSSigV4) || len(conf.Sites) != 2 || len(conf.Sites[1].Places) != 2 ||
			!conf.Sites[1].Places[0].AWS {
			t.Errorf("%+v", conf)
		}
	}
	e := policy.Endpoint{Name: "e", URL: "https://s3.test", Credential: "work"}
	err := grants(list...).addEndpoint(e, &planner.Input{})
	if err == nil || !strings.Contains(err.Error(), "signs what") {
		t.Errorf("an endpoint: %v", err)
	}
}
