package foreign

import (
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
)

// inForce is what holds with these two files of a user.
func inForce(t testing.TB, config, rules string) (policy.Effective, policy.Store) {
	t.Helper()
	return inForceWith(t, testVars(), config, rules)
}

func inForceWith(t testing.TB, vars policy.Vars, config, rules string) (policy.Effective, policy.Store) {
	t.Helper()
	user, err := policy.ParseConfig([]byte(config), "config.toml", policy.ScopeUser, vars)
	if err != nil {
		t.Fatalf("%v\n%s", err, config)
	}
	list, err := policy.ParseRules([]byte(rules), "policy.toml", policy.ScopeUser, vars)
	if err != nil {
		t.Fatalf("%v\n%s", err, rules)
	}
	e, err := policy.Merge(policy.Layers{User: user, Vars: vars}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e, policy.Store{}.Replace(policy.ScopeUser, list)
}

// ruleFile writes rules such as "allow write /a/**; deny connect a.b" as a policy.toml.
func ruleFile(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, ";") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		kind := "path"
		if f[1] == "connect" {
			kind = "host"
			if strings.ContainsAny(f[2][:1], "/~$") {
				kind = "socket"
			}
		}
		b.WriteString("[[rule]]\n" + kind + " = \"" + f[2] + "\"\naccess = \"" + f[1] + "\"\ndecision = \"" + f[0] + "\"\n")
	}
	return b.String()
}

// said writes rules in one spelling, without those that a fresh sbx would bring along.
func said(list []policy.Rule, without map[string]bool) []string {
	var out []string
	for _, r := range list {
		name := r.Pattern
		if r.Kind != policy.KindHost {
			name = r.Path().String()
		}
		if s := r.Decision.String() + " " + string(r.Access) + " " + name; !without[s] {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func exported(t testing.TB, format, config, rules string) (string, []edit.Unmapped, Imported) {
	t.Helper()
	e, s := inForce(t, config, rules)
	text, missing, err := Export(format, e, s, nil)
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	im, err := Import(format, []byte(text), testVars())
	if err != nil {
		t.Fatalf("%s: its own export: %v\n%s", format, err, text)
	}
	return text, missing, im
}

const everything = "allow write /srv/out/**; allow read /srv/in/**; deny write /srv/in/**; deny read /srv/out/no/**; " +
	"deny write /srv/out/ro/**; deny write $PROJECT/ci/**; deny read $PROJECT/keys/**; allow connect c.d; " +
	"deny connect e.f; allow connect /run/x/**; ask read /srv/ask/**; allow read /srv/d*/x; allow connect g.h:22"

// TestExportThenImport: what comes back is what the format can say, and what it cannot is listed.
func TestExportThenImport(t *testing.T) {
	for format, want := range map[string]struct{ rules, missing string }{
		"claude": {"allow connect /run/x;allow connect c.d;allow read /srv/d*/x;allow read /srv/in/**;allow write " +
			"/srv/out/**;ask read /srv/ask/**;deny connect e.f;deny read /home/u/proj/keys/**;deny read /srv/out/no/**;deny " +
			"write /home/u/proj/ci/**;deny write /srv/in/**;deny write /srv/out/ro/**", "g.h:22 /srv/d*/x"},
		"codex": {"allow connect /run/x;allow read /home/u/proj/ci/**;allow read /srv/in/**;allow read /srv/out/ro/**;" +
			"allow write /srv/out/**;deny connect e.f;deny read /home/u/proj/keys/**;deny read /srv/ask/**;deny read " +
			"/srv/out/no/**;deny write /home/u/proj/ci/**;deny write /srv/in/**;deny write /srv/out/ro/**",
			"g.h:22 /srv/d*/x /srv/ask/**"},
		"cursor": {"allow read /srv/in/**;deny connect e.f;deny write /srv/in/**",
			"g.h:22 /srv/d*/x /srv/ask/** /srv/out/** /srv/out/no/** /srv/out/ro/** /run/x/** " +
				"$PROJECT/ci/** $PROJECT/keys/** secrets"},
		"srt": {"allow connect /run/x;allow read /srv/in/**;allow write /home/u/proj/**;allow write /srv/out/**;deny " +
			"connect e.f;deny read /home/u/proj/keys/**;deny read /srv/ask/**;deny read /srv/out/no/**;deny write " +
			"/home/u/proj/ci/**;deny write /srv/in/**;deny write /srv/out/ro/**", "g.h:22 /srv/d*/x /srv/ask/**"},
	} {
		_, _, fresh := exported(t, format, "", "")
		without := map[string]bool{}
		for _, s := range said(fresh.Rules, nil) {
			without[s] = s != "allow write /home/u/proj/**"
		}
		text, missing, im := exported(t, format, "[network]\nhosts = [\"a.b\"]\n", ruleFile(everything))
		if got := strings.Join(said(im.Rules, without), ";"); got != want.rules {
			t.Errorf("%s:\n%s\nwant\n%s\n%s", format, got, want.rules, text)
		}
		hosts := ""
		for _, s := range im.Config {
			if s.Key == "network.hosts" {
				hosts = show(s.Value)
			}
		}
		if hosts != `["a.b", "c.d"]` && !(format == "claude" && hosts == `["a.b"]`) {
			t.Errorf("%s: hosts %s", format, hosts)
		}
		for _, u := range im.Unmapped {
			t.Errorf("%s: its own export has %v", format, u)
		}
		for _, name := range strings.Fields(want.missing) {
			if !slices.ContainsFunc(missing, func(u edit.Unmapped) bool {
				return strings.HasSuffix(u.Name, name) && u.Why != ""
			}) {
				t.Errorf("%s: %s is not listed in %v", format, name, missing)
			}
		}
		if len(missing) != len(strings.Fields(want.missing)) {
			t.Errorf("%s: listed are %v", format, missing)
		}
		// Once more, from what was imported: nothing changes.
		if again, _, _ := exported(t, format, im.ConfigTOML(), im.PolicyTOML()); again != text {
			t.Errorf("%s: the second export differs\n%s\n%s", format, text, again)
		}
	}
}

// TestImportThenExport: a file with what both know comes back with the same rules and settings.
func TestImportThenExport(t *testing.T) {
	for format, text := range map[string]string{
		"srt": `{"network":{"allowedDomains":["a.b","*.c.d"],"deniedDomains":["e.f"],"allowUnixSockets":["/run/x"]},
			"filesystem":{"denyRead":["~/priv"],"allowRead":["~/priv/open"],"allowWrite":[".","~/out"],"denyWrite":["ci"]}}`,
		"claude": `{"env":{"CI":"1"},"permissions":{"allow":["Read(~/x/**)","Edit(//srv/w/**)","WebFetch(domain:a.b)"],
			"ask":["Edit(./ci)"],"deny":["Read(~/no)","Edit(//srv/w/ro)"]},"sandbox":{"enabled":true,"network":{"allowedDomains":["g.h"],
			"allowUnixSockets":["/run/x"]},"credentials":{"envVars":[{"name":"TOKEN","mode":"deny"}]}}}`,
		"codex": `default_permissions = "p"
			approval_policy = "never"
			[permissions.p]
			extends = ":workspace"
			[permissions.p.filesystem]
			":minimal" = "read"
			"/srv/in" = "read"
			"/srv/out" = "write"
			"~/no" = "deny"
			[permissions.p.filesystem.":workspace_roots"]
			"ci" = "read"
			"**/*.key" = "deny"
			[permissions.p.network]
			enabled = true
			domains = { "a.b" = "allow", "x.a.b" = "deny" }
			unix_sockets = { "/run/x" = "allow" }
			[shell_environment_policy]
			exclude = ["AWS_*"]`,
		"cursor": `{"type":"workspace_readwrite","additionalReadwritePaths":["/srv/w"],"additionalReadonlyPaths":["/opt/r"],
			"networkPolicy":{"default":"deny","allow":["a.b","*.c.d"],"deny":["x.c.d"]}}`,
	} {
		first, err := Import(format, []byte(text), testVars())
		if err != nil || len(first.Unmapped) > 0 {
			t.Errorf("%s: %v %v", format, err, first.Unmapped)
		}
		_, _, second := exported(t, format, first.ConfigTOML(), first.PolicyTOML())
		_, _, fresh := exported(t, format, "", "")
		without := map[string]bool{}
		for _, s := range said(fresh.Rules, nil) {
			without[s] = s != "allow write /home/u/proj/**"
		}
		a, b := said(first.Rules, nil), said(second.Rules, without)
		if !slices.Equal(a, b) {
			t.Errorf("%s:\n%s\nbecame\n%s", format, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		for _, s := range first.Config {
			if !slices.ContainsFunc(second.Config, func(o policy.Setting) bool {
				return o.Key == s.Key && show(o.Value) == show(s.Value)
			}) {
				t.Errorf("%s: %s = %s did not come back: %s", format, s.Key, show(s.Value), second.ConfigTOML())
			}
		}
	}
}

// TestNothingWidens: where a format cannot hold to a rule, what the rule guards is not granted.
func TestNothingWidens(t *testing.T) {
	for name, c := range map[string]struct{ format, config, rules, never, why string }{
		"cursor closes nothing": {"cursor", "", "allow write /srv/**;deny read /srv/k/**", `"/srv"`, "would open /srv/k/**"},
		"cursor and secrets":    {"cursor", "[fs]\nwritable = [\"$PROJECT\", \"~\"]\n", "", `"/home/u"`, "would open"},
		"cursor, no project":    {"cursor", "[fs]\nwritable = []\n", "", "workspace_readwrite", ""},
		"srt opens by reading":  {"srt", "", "allow read ~/**", "allowRead", "would open"},
		"srt cannot ask":        {"srt", "", "allow write /srv/**;ask write /srv/a/**", `"denyWrite": []`, "refusal"},
		"a secret":              {"codex", "", "allow read ~/.ssh/config", ".ssh/config", "hidden: /home/u/.ssh/**"},
		"denied comes first":    {"claude", "", "deny read /srv/**;allow read /srv/a/**", "Read(//srv/a", "denied there"},
		"a rule over a setting": {"codex", "[fs]\nwritable = [\"/srv/w\"]\n", "deny write /srv/**", `"/srv/w"`, "overruled"},
		"the project is denied": {"codex", "", "deny write $PROJECT/**", `"." = "write"`, "overruled"},
		"a port":                {"codex", "", "allow connect a.b:22", "a.b", "a port"},
		"all hosts":             {"srt", "[network]\nallow = true\n", "", `"*"`, "all hosts"},
		"no hosts":              {"cursor", "", "", `"default": "allow"`, ""},
		"wildcards elsewhere":   {"srt", "", "allow write /srv/[a]/**", "[a]", "wildcards there"},
		"limits":                {"srt", "[limits]\nmemory = \"1G\"\n", "", "1G", "no equivalent"},
	} {
		text, missing, _ := exported(t, c.format, c.config, ruleFile(c.rules))
		if strings.Contains(text, c.never) {
			t.Errorf("%s: %s is in\n%s", name, c.never, text)
		}
		says := func(u edit.Unmapped) bool { return strings.Contains(u.Why, c.why) }
		if c.why != "" && !slices.ContainsFunc(missing, says) {
			t.Errorf("%s: %q is not among %v", name, c.why, missing)
		}
	}
	// The control: without what cannot be closed the same grant is written.
	if text, _, _ := exported(t, "cursor", "", ruleFile("allow write /srv/**")); !strings.Contains(text, `"/srv"`) {
		t.Errorf("a plain grant is left out:\n%s", text)
	}
}

func fuzzImport(f *testing.F, format string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		im, err := Import(format, data, testVars())
		if err != nil {
			return
		}
		e, s := inForce(t, im.ConfigTOML(), im.PolicyTOML())
		if !e.Sandbox.Enabled || e.Sandbox.FallbackOnUnavailable != "block" {
			t.Fatalf("an import switches the sandbox off:\n%s", data)
		}
		for _, u := range im.Unmapped {
			if u.Why == "" {
				t.Fatalf("%q is listed without a reason", u.Name)
			}
		}
		for _, format := range Exports()[1:] {
			text, _, err := Export(format, e, s, nil)
			if err == nil {
				_, err = Import(format, []byte(text), testVars())
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", format, err, text)
			}
		}
	})
}

func FuzzSRT(f *testing.F) {
	fuzzImport(f, "srt", `{"network":{"allowedDomains":["a.b"]},"filesystem":{"denyRead":["/"],"allowWrite":["x/**","../y"]}}`,
		`{"filesystem":{"allowWrite":[1,null]},"network":[]}`)
}

func FuzzClaude(f *testing.F) {
	fuzzImport(f, "claude", `{"permissions":{"allow":["Read(~/x/**)","Edit(!a)"],"deny":["Read(.env)","Bash"]},"env":{"A":"b"}}`,
		`{"sandbox":{"enabled":false,"credentials":{"files":[{"path":"~/k","mode":"mask"},{}],"envVars":[{"name":"A=","mode":"deny"}]}}}`)
}

func FuzzCodex(f *testing.F) {
	fuzzImport(f, "codex", "default_permissions='a'\n[permissions.a]\nextends='b'\n[permissions.b]\nextends='c'\n"+
		"[permissions.c]\nextends='b'\n", "[permissions.filesystem]\ndeny_read=['~/x','**/*.k']\n"+
		"[experimental_network]\nenabled=true\n",
		`{"default_permissions":"p","permissions":{"p":{"filesystem":{":tmpdir":"read",":workspace_roots":{".":"read"},"":"write"},"network":{"enabled":true,"domains":{"**.x":"allow"}}}}}`)
}

func FuzzCursor(f *testing.F) {
	fuzzImport(f, "cursor", `{"type":"workspace_readonly","additionalReadonlyPaths":["~/r"],"networkPolicy":{"default":"allow","deny":["10.0.0.0/8"]}}`,
		`{"networkPolicy":{"allow":[]},"disableTmpWrite":1}`)
}

func FuzzLegacy(f *testing.F) {
	fuzzImport(f, "sbx", "[sandbox]\nread_only_paths=['/a']\nmemory_limit_mb=5\n",
		"[execution.sandbox]\nprofile='x'\n[execution.sandbox.profiles.x]\nwritable_paths=['/w']\n"+
			"[execution.sandbox.profiles.y]\n")
}
