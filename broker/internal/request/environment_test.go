package request

import (
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/agentprofile"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
)

// settings are those of a run in the profile moderate.
func settings(env policy.Env, agent *Agent, command []string) Settings {
	s := Settings{Agent: agent}
	s.Servers = map[string]policy.Server{"s": {Command: command}}
	s.Env, s.Profile.Name = env, "moderate"
	return s
}

func TestEnvironment(t *testing.T) {
	outside := []string{"HOME=/elsewhere", "LANG=C", "GOFLAGS=-v", "MY_TOOL=1", "MY_API_KEY=k", "GITHUB_TOKEN=t",
		"SBX_SID=x",
		"LD_PRELOAD=/tmp/x.so", "EMPTY=", "=odd", "none"}
	facts := host.Facts{Home: "/home/u", UID: 1000}
	for name, row := range map[string]struct {
		request Request
		cfg     policy.Env
		agent   *Agent
		command []string // of the server s
		with    []string // what must be there
		without []string // names that must not
	}{
		"by default": {with: []string{"LANG=C", "GOFLAGS=-v", "HOME=/home/u", "PATH=/usr/local/bin:/usr/bin:/bin",
			"XDG_RUNTIME_DIR=/run/user/1000", "SBX_SANDBOX=1", "SBX_PROFILE=moderate", "SBX_SID="},
			without: []string{"MY_TOOL", "MY_API_KEY", "GITHUB_TOKEN", "LD_PRELOAD", "", "none"}},
		"a pattern passes no credential": {request: Request{envPass: []string{"MY_*", "*"}}, with: []string{"MY_TOOL=1"},
			without: []string{"MY_API_KEY", "GITHUB_TOKEN"}},
		"a name passes one": {request: Request{envPass: []string{"MY_API_KEY"}}, with: []string{"MY_API_KEY=k"},
			without: []string{"GITHUB_TOKEN"}},
		"a setting passes one": {cfg: policy.Env{Pass: []string{"GITHUB_TOKEN"}}, with: []string{"GITHUB_TOKEN=t"},
			without: []string{"MY_API_KEY"}},
		"denied is denied, whoever passes it": {request: Request{envPass: []string{"MY_TOOL"}},
			cfg: policy.Env{Deny: []string{"MY_*", "LANG"}}, without: []string{"MY_TOOL", "LANG"}},
		"--env NAME and NAME=VALUE": {request: Request{env: []string{"MY_API_KEY", "EMPTY", "UNSET", "A=b=c"}},
			with: []string{"MY_API_KEY=k", "EMPTY=", "A=b=c"}, without: []string{"UNSET"}},
		"a setting's value": {cfg: policy.Env{Set: map[string]string{"LANG": "de", "B": ""}},
			with: []string{"LANG=de", "B="}},
		"a tool is led to no other program": {request: Request{tool: "t"}, agent: &Agent{Profile: &agentprofile.Profile{
			Env: []string{"MY_TOOL"}}}, cfg: policy.Env{Pass: []string{"GITHUB_TOKEN", "MY_TOOL", "PATH"},
			Set: map[string]string{"PATH": "/home/u/p/bin:/usr/bin", "B": ""}},
			with:    []string{"LANG=C", "MY_TOOL=1", "PATH=/usr/bin", "B=", "HOME=/home/u"},
			without: []string{"GOFLAGS", "GITHUB_TOKEN", "MY_API_KEY"}},
		"nor is a server with a command": {request: Request{Server: "s"}, command: []string{"a"},
			with: []string{"LANG=C"}, without: []string{"GOFLAGS"}},
		"a server without one is whatever has its name": {request: Request{Server: "s"},
			with: []string{"GOFLAGS=-v"}},
		"the session's id is sbx's own": {request: Request{envPass: []string{"SBX_*"}},
			with: []string{"SBX_SID="}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Environment(outside, &row.request, settings(row.cfg, row.agent, row.command), facts)
			names := map[string]int{}
			for _, e := range got {
				k, _, _ := strings.Cut(e, "=")
				names[k]++
			}
			for _, want := range row.with {
				if !slices.Contains(got, want) {
					t.Errorf("%q is missing in %q", want, got)
				}
			}
			for _, k := range row.without {
				if names[k] > 0 {
					t.Errorf("%s is there: %q", k, got)
				}
			}
			for k, n := range names {
				if n > 1 {
					t.Errorf("%s is there %d times", k, n)
				}
			}
		})
	}
}

func TestUnsetAndWithheldVariables(t *testing.T) {
	env := []string{"EMPTY=", "MY_API_KEY=k", "MY_TOOL=1", "OTHER_TOKEN=t"}
	r := Request{env: []string{"EMPTY", "UNSET", "A=b"}, envPass: []string{"MY_*"}}
	if got := r.Unset(env); !slices.Equal(got, []string{"UNSET"}) {
		t.Errorf("unset: %q", got)
	}
	if got := r.Withheld(env, policy.Env{}); !slices.Equal(got, []string{"MY_API_KEY"}) {
		t.Errorf("withheld: %q", got)
	}
	if got := r.Withheld(env, policy.Env{Pass: []string{"MY_API_KEY"}}); got != nil {
		t.Errorf("withheld although named: %q", got)
	}
}

// A variable that is passed by itself is not where its value has a password in it, and that is said. One without is the
// control.
func TestPasswordsInValues(t *testing.T) {
	for value, held := range map[string]bool{
		"https://bob:pass@proxy.example/": true, "direct,https://bob:pass@proxy.example": true,
		"-Dhttp.proxyPassword=x": true, "a://b/,https://u:p@h": true,
		"https://proxy.example/a@b:c,direct": false, "https://bob@proxy.example": false, "-Dhttp.proxyPort=1": false,
	} {
		env, r := []string{"GOPROXY=" + value}, Request{}
		passes := slices.Contains(Environment(env, &r, Settings{}, host.Facts{}), env[0])
		if said := len(r.Withheld(env, policy.Env{})) > 0; passes == held || said != held {
			t.Errorf("%s: passed %v, said %v", value, passes, said)
		}
		if r.Withheld(env, policy.Env{Clear: true}) != nil {
			t.Errorf("%s: said of where nothing is passed", value)
		}
		r.env = []string{"GOPROXY"}
		if !slices.Contains(Environment(env, &r, Settings{}, host.Facts{}), env[0]) {
			t.Errorf("%s: not passed by its name", value)
		}
	}
}
