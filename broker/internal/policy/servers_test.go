package policy

import (
	"strings"
	"testing"
)

func serverLayer(t *testing.T, scope Scope, text string) (*Layer, error) {
	t.Helper()
	return parseConfig(&source{scope: scope, path: "config.toml", data: []byte(text)}, testVars())
}

func TestServers(t *testing.T) {
	const text = "[mcp.files]\nread = [\"~/notes/**\"]\nhosts = [\"api.example\"]\nenv = [\"TOKEN\"]\n"
	user, err := serverLayer(t, ScopeUser, text)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Merge(Layers{User: user, Vars: testVars()}, nil)
	if s := e.Servers["files"]; err != nil || len(s.Read) != 1 || len(s.Hosts) != 1 || len(s.Env) != 1 ||
		s.Origin.Line != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	// a project's count when somebody has trusted it
	project, err := serverLayer(t, ScopeProject, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []bool{false, true} {
		e, err := Merge(Layers{Project: project, Trusted: trusted, Vars: testVars()}, nil)
		if err != nil || (len(e.Servers) == 1) != trusted || (len(e.Notices) == 1) == trusted {
			t.Errorf("trusted %t: %v, %v, %v", trusted, e.Servers, e.Notices, err)
		}
	}
	more, err := serverLayer(t, ScopeUser, strings.Replace(text, "api.example", "*", 1))
	if err != nil {
		t.Fatal(err)
	}
	wide, err := Merge(Layers{User: more, Vars: testVars()}, nil)
	changes := Diff(e, wide)
	if err != nil || len(changes) != 1 || changes[0].Key != "mcp.files.hosts" || !changes[0].Widens {
		t.Errorf("the difference is %+v, %v", changes, err)
	}
}

func TestServersRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"mcp = 3\n":                       "at most",
		"[mcp]\na = 3\n":                  "mcp.a must be a table",
		"[mcp.a]\nreed = []\n":            "did you mean mcp.a.read?",
		"[mcp.a]\nread = [\"x y/../\"]\n": "mcp.a.read",
		"[mcp.a]\nhosts = [\"a b\"]\n":    "mcp.a.hosts",
		"[mcp.\"a b\"]\n":                 "is not a name",
		"[mcp.a]\ncommand = [\"./a\"]\n":  "neither a name nor an absolute path",
	} {
		if _, err := serverLayer(t, ScopeUser, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
