package policy

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy/trust"
)

// TestHostileProject is PL-01: one widening line each, refused by name and line, and nothing changed.
func TestHostileProject(t *testing.T) {
	for text, key := range map[string]string{
		"[fs]\nread_only = [\"~/.ssh\"]":                   "fs.read_only",
		"[fs]\nread_only = [\"/\"]":                        "fs.read_only",
		"[fs]\nwritable = [\"~\"]":                         "fs.writable",
		"[fs]\nwritable = [\"$PROJECT\", \"/tmp\"]":        "fs.writable",
		"[fs]\noverlay = [\"~\"]":                          "fs.overlay",
		"[fs]\ntmpfs = [\"/etc\"]":                         "fs.tmpfs",
		"[fs]\ncaches = \"rw\"":                            "fs.caches",
		"[network]\nallow = true":                          "network.allow",
		"[network]\nhosts = [\"*\"]":                       "network.hosts",
		"[network]\nmode = \"pasta\"":                      "network.mode",
		"[network]\npublish = [\"80:80\"]":                 "network.publish",
		"[network]\nhost_ports = [5432]":                   "network.host_ports",
		"[env]\npass = [\"*\"]":                            "env.pass",
		"[env.set]\nLD_PRELOAD = \"/tmp/x\"":               "env.set",
		"[sandbox]\nenabled = false":                       "sandbox.enabled",
		"[sandbox]\nprofile = \"permissive\"":              "sandbox.profile",
		"[sandbox]\nprompt = \"allow\"":                    "sandbox.prompt",
		"[sandbox]\nprompt_command = \"/tmp/x\"":           "sandbox.prompt_command",
		"[sandbox]\nfallback_on_unavailable = \"allow\"":   "sandbox.fallback_on_unavailable",
		"[sandbox]\nnon_root_user = false":                 "sandbox.non_root_user",
		"[sandbox]\nshare_pid = true":                      "sandbox.share_pid",
		"[sandbox]\ntimeout = \"0s\"":                      "",
		"[sandbox]\nprompt_timeout = \"0s\"":               "sandbox.prompt_timeout",
		"[sandbox]\nquestions = 100000":                    "sandbox.questions",
		"[sandbox]\nstat = \"type-only\"":                  "sandbox.stat",
		"[limits]\nmemory = \"90%\"":                       "limits.memory",
		"[limits]\nmemory = \"1G\"":                        "limits.memory", // not comparable with a share
		"[limits]\nmemory = \"\"":                          "limits.memory",
		"[limits]\npids = 0":                               "limits.pids",
		"[features]\ncontainers = true":                    "features.containers",
		"[features]\nsockets = [\"/run/docker.sock\"]":     "features.sockets",
		"[features]\nkvm = true":                           "features.kvm",
		"[profiles.evil]\nread_only = [\"/\"]":             "profiles.evil",
		"[sandbox]\nprofile = \"evil\"\n[profiles.evil]\n": "sandbox.profile",
		"[sandbox]\nhostname = \"x\"\n":                    "sandbox.hostname",
	} {
		w := newWorld(t)
		base := w.merge()
		w.write(ScopeProject, "config.toml", text)
		e := w.merge()
		found := key == ""
		for _, n := range e.Notices {
			if n.Key == key && n.Kind == NoticeWidening && n.Origin.File == w.path(ScopeProject, "config.toml") &&
				(n.Origin.Line == 2 || strings.HasPrefix(key, "profiles") || key == "env.set") {
				found = true
			}
		}
		if !found {
			t.Errorf("%q: notices %v", text, e.Notices)
		}
		if !reflect.DeepEqual(e.Config, base.Config) {
			t.Errorf("%q changed something: %v", text, Diff(base, e))
		}
		for _, c := range Diff(base, e) {
			if c.Widens {
				t.Errorf("%q widens %v", text, c)
			}
		}
	}
}

func TestNarrowingProject(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeUser, "config.toml", "[env]\ndeny = [\"AWS_*\"]\n")
	w.write(ScopeProject, "config.toml", `[sandbox]
profile = "strict"
mode = "static"
debug = false
timeout = "1h"
prompt = "deny"
strict = true
[fs]
hidden = ["$PROJECT/private", "~/other"]
secrets = ["$PROJECT/*.key"]
writable = []
caches = "ro"
[network]
hosts = []
[limits]
memory = "50%"
pids = 100
[env]
pass = ["LANG"]
deny = ["X"]
`)
	e := w.merge()
	if len(e.Notices) != 0 {
		t.Errorf("notices %v", e.Notices)
	}
	if e.Sandbox.Profile != "strict" || e.Sandbox.Mode != "static" || e.Sandbox.Debug || e.Sandbox.Timeout != time.Hour ||
		len(e.FS.Hidden) != 2 || len(e.Writable()) != 0 || e.FS.Writable != nil ||
		e.Limits.Pids != 100 || !reflect.DeepEqual(e.Env.Deny, []string{"X", "AWS_*"}) ||
		!reflect.DeepEqual(e.Env.Pass, []string{"LANG"}) {
		t.Errorf("%+v", e.Config)
	}
	if o := e.Origins["fs.hidden"]; len(o) != 2 || o[0].Line != 9 || o[0].Scope != ScopeProject {
		t.Errorf("origins %v", o)
	}
}

// TestOrgFinal: nothing later widens a locked key, narrowing it stays possible, denying lists only grow.
func TestOrgFinal(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeOrg, "config.toml",
		"final = [\"network\", \"limits.pids\"]\n[limits]\npids = 500\n[fs]\nhidden = [\"/srv/secret\"]\n[network]\nhosts "+
			"= [\"*.corp.example\"]\n")
	w.write(ScopeUser, "config.toml",
		"[limits]\npids = 5000\n[fs]\nhidden = []\n[network]\nallow = true\nhosts = [\"git.corp.example\"]\n")
	flag := func(key, name string, v any) Setting {
		s, err := Flag(key, name, v, w.Vars)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	e := w.merge(flag("network.allow", "--allow-network", true), flag("network.hosts", "--allow-host",
		[]string{"evil.test"}), flag("limits.pids", "--pids", 100))
	if e.Limits.Pids != 100 || e.Network.Allow || !reflect.DeepEqual(e.Network.Hosts, []string{"git.corp.example"}) ||
		!reflect.DeepEqual(e.FS.Hidden, []string{"/srv/secret"}) {
		t.Errorf("%+v", e.Config)
	}
	var got []string
	for _, n := range e.Notices {
		if n.Kind == NoticeLocked {
			got = append(got, n.Key+"@"+filepath.Base(n.Origin.String()))
		}
	}
	if want := []string{"limits.pids@config.toml:2", "network.allow@config.toml:6", "network.allow@--allow-network",
		"network.hosts@--allow-host"}; !sameSet(got, want) {
		t.Errorf("notices %v, want %v", got, want)
	}
	// A profile must not bring in what is locked.
	w.write(ScopeOrg, "config.toml", "final = [\"network.allow\"]\n")
	w.write(ScopeUser, "config.toml", "[sandbox]\nprofile = \"permissive\"\n")
	if r, _ := w.merge().Reach(false); r != NoHosts {
		t.Errorf("reach %v", r)
	}
	w.write(ScopeOrg, "config.toml", "final = [\"fs.hiden\"]\n")
	w.loadErr("did you mean fs.hidden?")
}

func sameSet(a, b []string) bool {
	m := map[string]int{}
	for _, s := range a {
		m[s]++
	}
	for _, s := range b {
		m[s]--
	}
	for _, n := range m {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestThreeStates is PL-13.
func TestThreeStates(t *testing.T) {
	for text, want := range map[string]Reach{
		"": NoHosts, "[network]\nallow = true": AllHosts, "[network]\nallow = true\nhosts = []": NoHosts,
		"[network]\nhosts = []":        NoHosts,
		"[network]\nhosts = [\"a.b\"]": SomeHosts, "[network]\nallow = false\nhosts = [\"a.b\"]": NoHosts,
		"[network]\nallow = true\nhosts = [\"a.b\"]":                    SomeHosts,
		"[sandbox]\nprofile = \"permissive\"":                           AllHosts,
		"[sandbox]\nprofile = \"permissive\"\n[network]\nallow = false": NoHosts,
		"[sandbox]\nprofile = \"permissive\"\n[network]\nhosts = []":    NoHosts,
		"[network]\nallow = true\nmode = \"none\"":                      NoHosts,
	} {
		w := newWorld(t)
		w.write(ScopeUser, "config.toml", text)
		if r, _ := w.merge().Reach(false); r != want {
			t.Errorf("%q: reach %v, want %v", text, r, want)
		}
	}
	w := newWorld(t)
	for text, want := range map[string]string{"": "/home/proj\"]", "[fs]\nwritable = []": "[]",
		"[fs]\nwritable = [\"/srv\"]": "[\"/srv\"]"} {
		w.write(ScopeUser, "config.toml", text)
		if v, _ := w.merge().Value("fs.writable"); !strings.HasSuffix(v, want) {
			t.Errorf("%q: %s", text, v)
		}
	}
}

func TestMergeOrderAndFlags(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeOrg, "config.toml", "[limits]\npids = 3000\n")
	w.write(ScopeProject, "config.toml", "[limits]\npids = 2000\n")
	w.write(ScopeUser, "config.toml", "[limits]\npids = 2500\n[fs]\nread_only = [\"/a\"]\n")
	s, err := Flag("fs.read_only", "--ro", []string{"~/b"}, w.Vars)
	if err != nil {
		t.Fatal(err)
	}
	e := w.merge(s)
	if e.Limits.Pids != 2500 || !reflect.DeepEqual(e.FS.ReadOnly, []string{"/a", w.Vars.Home + "/b"}) {
		t.Errorf("%+v", e.Config)
	}
	for trusted, want := range map[bool][]Scope{false: {ScopeOrg, ScopeUser}, true: {ScopeOrg, ScopeProject, ScopeUser}} {
		l, err := Load(w.Sources)
		if err != nil {
			t.Fatal(err)
		}
		e, _ := Merge(l.WithTrust(trusted), nil)
		var scopes []Scope
		for _, o := range e.Origins["limits.pids"] {
			scopes = append(scopes, o.Scope)
		}
		if !reflect.DeepEqual(scopes, want) {
			t.Errorf("trusted %t: history %v", trusted, scopes)
		}
	}
	if o := e.Origins["fs.read_only"]; len(o) != 2 || o[1].String() != "--ro" || o[0].Line != 4 {
		t.Errorf("origins %v", o)
	}
	// A flag on a list that the profile decides adds to the profile's.
	s, _ = Flag("fs.writable", "--rw", []string{"/srv"}, w.Vars)
	if e := w.merge(s); !reflect.DeepEqual(e.FS.Writable, []string{w.Vars.Project, "/srv"}) {
		t.Errorf("%v", e.FS.Writable)
	}
	for _, bad := range []struct {
		key string
		v   any
	}{{"fs.nope", true}, {"limits.pids", "x"}, {"fs.read_only", []string{"rel"}}, {"sandbox.mode", "x"},
		{"network.host_ports", []string{"x"}}} {
		if _, err := Flag(bad.key, "--f", bad.v, w.Vars); err == nil || !strings.HasPrefix(err.Error(), "reading --f: ") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if s, err := Flag("network.host_ports", "--host-port", []string{"80"}, w.Vars); err != nil ||
		!reflect.DeepEqual(s.Value, []int{80}) {
		t.Error(s, err)
	}
}

// TestTrust is PL-09: exactly the pinned bytes at the pinned path.
func TestTrust(t *testing.T) {
	w := newWorld(t)
	good, bad := "[fs]\nread_only = [\"$PROJECT/docs\"]\n", "[fs]\nread_only = [\"~/.ssh\"]\n"
	trusted := func() bool {
		t.Helper()
		l, err := Load(w.Sources)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Merge(l, nil)
		if err != nil {
			t.Fatal(err)
		}
		if l.Trusted != (len(e.FS.ReadOnly) == 1) {
			t.Fatalf("trusted=%v but read_only=%v", l.Trusted, e.FS.ReadOnly)
		}
		return l.Trusted
	}
	w.write(ScopeProject, "config.toml", good)
	l, _ := Load(w.Sources)
	if trusted() {
		t.Fatal("trusted without a pin")
	}
	if err := trust.Pin(w.TrustDir, w.ProjectDir, l.Pins, w.UID); err != nil {
		t.Fatal(err)
	}
	if !trusted() {
		t.Fatal("the pin does not hold")
	}
	a, _ := Merge(l, nil)
	b, _ := Merge(l.WithTrust(true), nil)
	if d := Diff(a, b); len(d) != 1 || d[0].Key != "fs.read_only" || !d[0].Widens {
		t.Errorf("diff %v", d)
	}
	w.write(ScopeProject, "config.toml", bad)
	if trusted() {
		t.Fatal("other bytes are trusted")
	}
	w.write(ScopeProject, "config.toml", good)
	w.write(ScopeProject, "policy.toml", "")
	if trusted() {
		t.Fatal("a file that came later is trusted")
	}
	os.Remove(w.path(ScopeProject, "policy.toml"))
	if !trusted() {
		t.Fatal("the pin is lost")
	}
	if err := trust.Unpin(w.TrustDir, w.ProjectDir, w.UID); err != nil || trusted() {
		t.Fatal("the pin stays", err)
	}
	if err := trust.Pin(w.TrustDir, w.ProjectDir, trust.Pins{Config: "-", Policy: "-"}, w.UID); err == nil {
		t.Error("pinned a project without files")
	}
	// Even a trusted project does not decide about the host.
	w.write(ScopeProject, "config.toml",
		"[sandbox]\nenabled = false\nprompt = \"allow\"\nprompt_command = \"x\"\nfallback_on_unavailable = \"allow\"\n")
	l, _ = Load(w.Sources)
	e, _ := Merge(l.WithTrust(true), nil)
	if !e.Sandbox.Enabled || e.Sandbox.Prompt != "auto" || e.Sandbox.PromptCommand != "" ||
		e.Sandbox.FallbackOnUnavailable != "block" || len(e.Notices) != 4 {
		t.Errorf("%+v %v", e.Sandbox, e.Notices)
	}
	os.WriteFile(w.TrustDir+"/trust", []byte("v1 x y\n"), 0o600)
	w.loadErr("not a line sbx has written")
	os.Chmod(w.TrustDir+"/trust", 0o666)
	w.loadErr("chmod go-w")
}

func TestPolicyFiles(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		"[[rule]]\npath=\"/x\"\ndecision=\"allow\"\nreson=\"x\"": "policy.toml:4: rule: unknown " +
			`key "reson"; did you mean reason?`,
		"\n\n[[rule]]\npath=\"/x\"":    "policy.toml:3: rule: decision is missing",
		"[[rule]]\ndecision=\"allow\"": "one of path, exec, host, socket is missing",
		"[[rule]]\npath=\"/x\"\nhost=\"a.b\"\ndecision=\"deny\"": "policy.toml:2: rule: host and path in " +
			"one rule; write two",
		"[[rule]]\npath=\"/x\"\ndecision=\"Allow\"":                             "want allow, deny or ask",
		"[[rule]]\npath=\"/x\"\naccess=\"connect\"\ndecision=\"deny\"":          "does not go with path",
		"[[rule]]\npath=\"@x\"\ndecision=\"deny\"":                              "abstract socket",
		"[[rule]]\npath=\"/x\"\ndecision=\"deny\"\nfinal=true":                  "only the org file",
		"[[rule]]\npath=\"/x\"\ndecision=\"deny\"\nexpires=2027-01-01":          "needs a time and a zone",
		"[[rule]]\npath=\"/x\"\ndecision=\"deny\"\nexpires=2027-01-01T00:00:00": "needs a time and a zone",
		"[[rule]]\npath=\"/x\"\ndecision=\"deny\"\nexpires=\"2027\"":            "want a date",
		"[[rule]]\npath=1\ndecision=\"deny\"":                                   "path: want a string",
		"[rule]\npath=\"/x\"":                                                   "must be a list",
		"rules=1":                                                               "did you mean rule?",
		"version=3":                                                             "version must be 1",
		"[[rule]]\nhost=\"*example.com\"\ndecision=\"deny\"":                    "whole label",
		"[[rule]]\npath=\"/x/../y\"\ndecision=\"deny\"":                         "not allowed",
		"rule=[1]": "must be a table",
	} {
		w.write(ScopeUser, "policy.toml", text)
		w.loadErr(want)
	}
	w.write(ScopeUser, "policy.toml",
		"version = 1\nrule = [\n {path='/x', decision='deny'},\n {host='*', decision='allow', access='connect'}]\n")
	w.write(ScopeProject, "policy.toml", "[[rule]]\npath = \"/y\"\ndecision = \"allow\"\n")
	l, err := Load(w.Sources)
	if err != nil {
		t.Fatal(err)
	}
	rules := l.Policy.Rules()
	if len(rules) != 3 || rules[1].Origin.Line != 3 || rules[2].Origin.Line != 4 {
		t.Fatalf("%v", rules)
	}
	if len(l.Notices) != 2 || l.Notices[0].Kind != NoticeWidening || l.Notices[1].Kind != NoticeWideHost {
		t.Errorf("notices %v", l.Notices)
	}
	if d := DiffRules(l.Policy, l.WithTrust(true).Policy); len(d) != 1 || !d[0].Widens || d[0].New != "allow read /y" {
		t.Errorf("diff %v", d)
	}
}
