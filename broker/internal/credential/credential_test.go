//go:build linux

package credential

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/shared/proxied"
)

// grants are those of some credentials, by name.
func grants(list ...policy.Credential) *Grants {
	g := &Grants{known: map[string]policy.Credential{}}
	for _, c := range list {
		g.known[c.Name] = c
	}
	return g
}

// A credential goes where its table says, and else where its kind does.
func TestPlaces(t *testing.T) {
	bearer := proxied.Place{Header: "Authorization", Format: "Bearer {}"}
	for name, x := range map[string]struct {
		c     policy.Credential
		hosts string
		place proxied.Place // of the first
	}{
		"a kind":           {policy.Credential{Name: "openai"}, "api.openai.com", bearer},
		"another name":     {policy.Credential{Name: "mine", Kind: "openai"}, "api.openai.com", bearer},
		"a kind elsewhere": {policy.Credential{Name: "npm", Hosts: []string{"npm.test"}}, "npm.test", bearer},
		"hosts alone": {policy.Credential{Name: "x", Hosts: []string{"a.test", "b.test:8443"}},
			"a.test b.test:8443", bearer},
		"a header": {policy.Credential{Name: "x", Hosts: []string{"a.test"}, Header: "X-Key: {}"}, "a.test",
			proxied.Place{Header: "X-Key", Format: "{}"}},
		"a password": {policy.Credential{Name: "x", Hosts: []string{"a.test"}, Basic: "me"}, "a.test",
			proxied.Place{Basic: true, User: "me"}},
		"a parameter": {policy.Credential{Name: "x", Hosts: []string{"a.test"}, Query: "key"}, "a.test",
			proxied.Place{Query: "key"}},
		"a kind, another way": {policy.Credential{Name: "openai", Query: "key"}, "api.openai.com",
			proxied.Place{Query: "key"}},
	} {
		g, in := grants(x.c), &planner.Input{}
		if err := g.add(x.c.Name, "--with", in); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var hosts []string
		for _, s := range g.sites {
			hosts = append(hosts, server(s.Host, s.Port))
		}
		x.place.Secret = x.c.Name
		if strings.Join(hosts, " ") != x.hosts || g.sites[0].Places[0] != x.place {
			t.Errorf("%s: %+v", name, g.sites)
		}
	}
	for name, c := range map[string]policy.Credential{"nothing is known": {Name: "x"}, "no such kind": {Name: "x",
		Kind: "y"}} {
		if err := grants(c).add("x", "--with", &planner.Input{}); err == nil {
			t.Errorf("%s: it was granted", name)
		}
	}
	if err := grants().add("x", "--with", &planner.Input{}); err == nil {
		t.Error("a credential that does not exist was granted")
	}
}

// What is shown is a placeholder, another one each time, also where the caller passes the real variable.
func TestPlaceholders(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		g, in := grants(policy.Credential{Name: "github"}), &planner.Input{Env: []string{"GITHUB_TOKEN=REAL", "A=b"}}
		if err := g.add("github", "--with", in); err != nil {
			t.Fatal(err)
		}
		g.showGit(in)
		v := host.Lookup(in.Env, "GITHUB_TOKEN")
		if !strings.HasPrefix(v, "sbx-placeholder-github-") || v != host.Lookup(in.Env, "GH_TOKEN") || seen[v] ||
			strings.Contains(strings.Join(in.Env, " "), "REAL") {
			t.Errorf("%q", in.Env)
		}
		seen[v] = true
		if !slices.Contains(in.Env, "GIT_CONFIG_KEY_1=credential.https://github.com.helper") ||
			!strings.Contains(host.Lookup(in.Env, "GIT_CONFIG_VALUE_1"), "password="+v) {
			t.Errorf("%q", in.Env)
		}
	}
}

// Files of tools have every credential of the run that they are for, as each tool writes it, and placeholders alone.
func TestFiles(t *testing.T) {
	list := []policy.Credential{
		{Name: "docker", Hosts: []string{"r.test", "auth.d.test"}, Basic: "me", FromEnv: "MINE"},
		{Name: "ghcr", Kind: "docker", Hosts: []string{"g.test:5000"}, Basic: "you"},
		{Name: "npm", Hosts: []string{"n.test"}},
		{Name: "work", Kind: "npm", Hosts: []string{"w.test"}},
		{Name: "header", Kind: "docker", Hosts: []string{"h.test"}, Header: "X-Key: {}"}, // is no password
	}
	g, in := grants(list...), &planner.Input{Env: []string{"MINE=REAL", "DOCKER_CONFIG=/home/x/.docker"}}
	key := map[string]string{}
	for _, c := range list {
		if err := g.add(c.Name, "--with", in); err != nil {
			t.Fatal(err)
		}
		key[c.Name] = g.list[len(g.list)-1].placeholder
	}
	g.showFiles(in)
	auth := func(user, name string) string {
		return `{"auth":"` + base64.StdEncoding.EncodeToString([]byte(user+":"+key[name])) + `"}`
	}
	want := map[string]string{
		"/run/sbx/docker/config.json": `{"auths":{"auth.d.test":` + auth("me", "docker") + `,"d.test":` +
			auth("me", "docker") + `,"g.test:5000":` + auth("you", "ghcr") + `,"https://index.d.test/v1/":` +
			auth("me", "docker") + `,"r.test":` + auth("me", "docker") + "}}\n",
		"/run/sbx/npmrc": "//n.test/:_authToken=" + key["npm"] + "\n//w.test/:_authToken=" + key["work"] + "\n",
		"/run/sbx/netrc": "machine r.test login me password " + key["docker"] +
			"\nmachine auth.d.test login me password " + key["docker"] +
			"\nmachine g.test:5000 login you password " + key["ghcr"] + "\n",
	}
	for _, c := range in.Copies {
		if c.Text.Text != want[c.Path] || strings.Contains(c.Text.Name, "/") {
			t.Errorf("%s (%s)\n%s\nwant\n%s", c.Path, c.Text.Name, c.Text.Text, want[c.Path])
		}
		delete(want, c.Path)
	}
	if len(want) > 0 {
		t.Errorf("not shown: %q", want)
	}
	for name, v := range map[string]string{"DOCKER_CONFIG": "/run/sbx/docker", "NETRC": "/run/sbx/netrc",
		"REGISTRY_AUTH_FILE": "/run/sbx/docker/config.json", "NPM_CONFIG_USERCONFIG": "/run/sbx/npmrc"} {
		if host.Lookup(in.Env, name) != v {
			t.Errorf("%s is %q", name, host.Lookup(in.Env, name))
		}
	}
	err := grants(policy.Credential{Name: "docker", Hosts: []string{"r.test"}}).add("docker", "--with", &planner.Input{})
	if err == nil || !strings.Contains(err.Error(), "names no user") {
		t.Errorf("a password of nobody: %v", err)
	}
}

// The variable that has the value is not inside.
func TestSourcesAreHidden(t *testing.T) {
	hosts := []string{"a.test"}
	g := grants(policy.Credential{Name: "e", Hosts: hosts, FromEnv: "MINE"})
	in := &planner.Input{Env: []string{"MINE=REAL", "OTHER=b"}}
	for name := range g.known {
		if err := g.add(name, "--with", in); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(in.Env, []string{"OTHER=b"}) {
		t.Errorf("%q", in.Env)
	}
}

// An endpoint is reached by an address and a socket of its own, by no name, and its credential goes over TLS.
func TestEndpoints(t *testing.T) {
	g := grants(policy.Credential{Name: "anthropic"})
	in := &planner.Input{}
	e := policy.Endpoint{Name: "claude", URL: "https://api.anthropic.com/x/", Credential: "anthropic", Requests: 3,
		Money: "2.50", Prices: map[string]string{"*": "3.00/15.00"}}
	if err := g.addEndpoint(e, in); err != nil {
		t.Fatal(err)
	}
	s := g.sites[0]
	if s.Host != "api.anthropic.com" || s.Prefix != "/x" || !s.Inject || s.Places[0].Header != "X-Api-Key" ||
		s.Budget.API != "anthropic" || s.Budget.Cents != 250 || s.Budget.Prices["*"] != (proxied.Price{In: 300, Out: 1500}) {
		t.Errorf("%+v %+v", s, s.Budget)
	}
	if names := g.Served().Names; len(names) > 0 {
		t.Errorf("names that lead to it: %q", names)
	}
	if host.Lookup(in.Env, "ANTHROPIC_BASE_URL") != "http://127.0.0.1:48480" ||
		in.Grants[0].Path != "/run/sbx/endpoint/claude" {
		t.Errorf("%q %+v", in.Env, in.Grants)
	}
	for url, ok := range map[string]bool{"http://api.test": false, "http://127.0.0.1:11434": true,
		"http://localhost": true} {
		for _, name := range []string{"anthropic", ""} {
			e.URL, e.Credential = url, name
			if err := grants(policy.Credential{Name: "anthropic"}).addEndpoint(e, &planner.Input{}); (err == nil) != ok {
				t.Errorf("%s, credential %q: %v", url, name, err)
			}
		}
	}
}

// A login has its token endpoint beside its hosts, and nothing stands for it in the environment. It needs a key to seal
// to, and the endpoint of its own alone.
func TestLogins(t *testing.T) {
	c := policy.Credential{Name: "anthropic", Login: "https://auth.test:8443/oauth/token", Allow: []string{"GET /x"}}
	g, in := grants(c), &planner.Input{}
	g.sealed = t.TempDir()
	if err := g.add(c.Name, "--with", in); err == nil || !strings.Contains(err.Error(), "no passphrase") {
		t.Errorf("without a key: %v", err)
	}
	other := c
	other.Name, other.Hosts = "other", []string{"auth.test:8443"}
	g = grants(c, other)
	g.sealed = t.TempDir()
	if err := os.WriteFile(filepath.Join(g.sealed, proxied.PublicKey), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.add(c.Name, "--with", in); err != nil {
		t.Fatal(err)
	}
	api, auth := g.sites[0], g.sites[1]
	bearer := proxied.Place{Secret: c.Name, Header: "Authorization", Format: "Bearer {}"}
	if api.Host != "api.anthropic.com" || !slices.Equal(api.Places, []proxied.Place{bearer}) || len(api.Logins) > 0 ||
		auth.Host != "auth.test" || auth.Port != 8443 || len(auth.Places) > 0 ||
		!slices.Equal(auth.Logins, []proxied.Login{{Secret: c.Name, Path: "/oauth/token"}}) || len(in.Env) > 0 {
		t.Errorf("%+v %q", g.sites, in.Env)
	}
	s := g.configuration(network.Addresses{}).Secrets[0]
	if !s.Sealed || s.Placeholder != "" || !slices.Equal(s.Allow, c.Allow) ||
		!slices.Equal(s.Fields, []string{"access_token", "refresh_token", "id_token"}) {
		t.Errorf("%+v", s)
	}
	conf := g.configuration(network.Addresses{})
	files, err := g.values(&conf)
	if closeAll(files); err != nil || len(conf.Secrets[0].Kept) > 0 || conf.Secrets[0].Mark != "" {
		t.Fatalf("before anybody has signed in: %+v, %v", conf.Secrets, err)
	}
	if kept := g.keep(g.logins[0], []byte("new")); kept.Mark == "" || kept.Why != "" {
		t.Errorf("%+v", kept)
	}
	if text, err := os.ReadFile(filepath.Join(g.sealed, c.Name+".age")); err != nil || string(text) != "new" {
		t.Errorf("kept %q, %v", text, err)
	}
	if list, _ := os.ReadDir(g.sealed); len(list) != 3 { // with the key and the turn
		t.Errorf("%v", list)
	}
	if err := g.add("other", "--with", in); err == nil || !strings.Contains(err.Error(), "has the login of another one") {
		t.Errorf("two of one endpoint: %v", err)
	}
	e := policy.Endpoint{Name: "e", URL: "https://api.anthropic.com", Credential: c.Name}
	if err := g.addEndpoint(e, in); err == nil || !strings.Contains(err.Error(), "is a login") {
		t.Errorf("an endpoint: %v", err)
	}
}

// TestKnownLogins: a sign-in that is known by its name needs nothing in the settings. What is said there counts.
func TestKnownLogins(t *testing.T) {
	for _, k := range kinds() {
		c := policy.Credential{Name: k.name}
		c.KnowLogin()
		if (c.Login != "") != k.login {
			t.Errorf("%s: policy knows the token endpoint %q", k.name, c.Login)
		}
		if k.login && !slices.Equal(places(c, k), k.at) {
			t.Errorf("%s stands in %+v", k.name, places(c, k))
		}
	}
	for _, c := range []policy.Credential{{Name: "x", Kind: "github-login", FromEnv: "X"},
		{Name: "github-login", Store: policy.Keyring}, {Name: "github-login", Kind: "github"}} {
		if c.KnowLogin(); c.Login != "" {
			t.Errorf("%+v", c)
		}
	}
	c := policy.Credential{Name: "x", Kind: "github-login", Hosts: []string{"github.test"}}
	bearer := []at{{"github.test", header("Authorization", "Bearer {}")}}
	if c.KnowLogin(); !strings.HasPrefix(c.Login, "https://github.com/") ||
		!slices.Equal(places(c, kindOf(c.Kind)), bearer) {
		t.Errorf("%+v %+v", c, places(c, kindOf(c.Kind)))
	}
}

// TestEndpointsInLongFolders: a socket's name has room for 107 bytes, and the home of somebody may be longer.
func TestEndpointsInLongFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	g := &Grants{sockets: []socket{{file: "endpoint-0"}}}
	files, err := g.open(dir)
	if err != nil {
		t.Fatal(err)
	}
	files[0].Close()
	if st, err := os.Lstat(filepath.Join(dir, "endpoint-0")); err != nil || st.Mode().Type() != os.ModeSocket {
		t.Errorf("no socket there: %v, %v", st, err)
	}
}

// An empty list of requests allows none: it is no list that is missing. Each credential has its own.
func TestAllowsNothing(t *testing.T) {
	g := grants()
	lists := [][]string{nil, {}, {"GET /a"}}
	for i, allow := range lists {
		c := policy.Credential{Name: "x" + strconv.Itoa(i), Hosts: []string{"a.test"}, Allow: allow}
		g.known[c.Name] = c
		if err := g.add(c.Name, "--with", &planner.Input{}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(g.configuration(network.Addresses{}))
	if err != nil {
		t.Fatal(err)
	}
	var conf proxied.Config // as sbx-proxy reads it
	if err := json.Unmarshal(text, &conf); err != nil {
		t.Fatal(err)
	}
	for i, want := range lists {
		if got := conf.Secrets[i].Allow; (got == nil) != (want == nil) || !slices.Equal(got, want) {
			t.Errorf("%#v, want %#v", got, want)
		}
	}
}
