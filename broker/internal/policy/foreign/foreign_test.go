package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
)

func testVars() policy.Vars {
	return policy.Vars{Home: "/home/u", Project: "/home/u/proj", TmpDir: "/tmp", XDGConfigHome: "/home/u/.config"}
}

func TestImport(t *testing.T) {
	for name, c := range map[string]struct{ format, text, config, rules, unmapped string }{
		"legacy": {"sbx", `{"read_only_paths":["/a"],"masked_paths":["/b"],"workdir":"/w","non_root_user":true,"readonly_paths":["/c"],"writable_paths":["/d"],"blocked_paths":["/e"],
			"allow_network":false,"timeout_seconds":5,"memory_limit_mb":512,"share_pid":true,"new_session":true,"wat":1}`,
			`sandbox.new_session=true sandbox.non_root_user=true sandbox.share_pid=true sandbox.timeout=5s sandbox.workdir="/w" fs.hidden=["/e", "/b"] fs.read_only=["/a", "/c"] fs.writable=["/d"] network.allow=false limits.memory="512M"`, "", "wat"},
		"legacy toml": {"sbx", "allow_network = true\ntimeout_seconds = 9\n", `sandbox.timeout=9s network.allow=true`, "",
			""},
		"srt": {"srt", `{"network":{"allowedDomains":["a.b","*.c.d"],"deniedDomains":["e.f"],"allowUnixSockets":["/run/x"],"allowLocalBinding":true},"filesystem":{"denyRead":["~/.ssh"],"allowWrite":[".","/tmp"],"denyWrite":[".env"]},"other":1}`,
			`network.hosts=["a.b", "*.c.d"]`,
			"allow write $PROJECT/**;allow write /tmp/**;deny read ~/.ssh/**;deny write $PROJECT/.env/**;allow connect " +
				"/run/x;deny connect e.f", "network.allowLocalBinding other"},
		"claude": {"claude",
			`{"permissions":{"allow":["Read(~/x/**)","Bash(git:*)","WebFetch(domain:a.b)","WebSearch"],"deny":["Read(./.env)","Edit(//etc/**)"],"ask":["Write(src/**)"],"additionalDirectories":["../lib","/l"],"defaultMode":"plan"},"sandbox":{"enabled":true},"model":"x"}`,
			`sandbox.enabled=true`,
			"allow write /home/u/lib/**;allow write /l/**;allow read ~/x/**;allow connect a.b;ask write $PROJECT/src/**;deny " +
				"read $PROJECT/.env/**;deny write /etc/**", "Bash(git:*) WebSearch model permissions.defaultMode"},
		"codex": {"codex", "sandbox_mode = \"workspace-write\"\napproval_policy = \"never\"\nmodel = " +
			"\"x\"\n[sandbox_workspace_write]\nwritable_roots = [\"/w\"]\nnetwork_access = true\nexclude_slash_tmp = " +
			"true\n[shell_environment_policy]\ninherit = \"core\"\ninclude_only = [\"PATH\"]\nexclude = [\"AWS_*\"]\nset = { " +
			"CI = \"1\" }\n",
			`sandbox.prompt="deny" fs.writable=["/home/u/proj", "/w"] network.allow=true env.pass=["PATH"] env.set=map[CI:1] env.deny=["AWS_*"]`, "", "shell_environment_policy.inherit model sandbox_workspace_write.exclude_slash_tmp"},
		"codex asks": {"codex", `{"approval_policy":"on-request","permissions":{"x":{}}}`, ``, "",
			"approval_policy permissions"},
		"claude env": {"claude", `{"env":{"CI":"1"}}`, `env.set=map[CI:1]`, "", ""},
		"codex read": {"codex", `{"sandbox_mode":"read-only"}`, `fs.writable=[]`, "", ""},
		"codex full": {"codex", `{"sandbox_mode":"danger-full-access"}`, ``, "", "sandbox_mode"},
		"legacy sections": {"sbx", "[sandbox]\nread_only_paths = [\"/a\"]\nmasked_paths = [\"/b\"]\nworkdir = " +
			"\"/w\"\nnon_root_user = true\nenabled = false\n[execution.sandbox.profiles.x]\nwritable_paths = " +
			"[\"/d\"]\nallow_network = false\nwat = 1\n",
			`sandbox.non_root_user=true sandbox.workdir="/w" fs.hidden=["/b"] fs.read_only=["/a"] fs.writable=["/d"] network.allow=false`,
			"", "sandbox.enabled wat"},
		"legacy profile": {"sbx:y", "[execution.sandbox]\nprofile = \"x\"\n[execution.sandbox.profiles.x]\nallow_network " +
			"= true\n[execution.sandbox.profiles.y]\nallow_network = false\n", `network.allow=false`, "", "profiles.x"},
		"legacy, none chosen": {"sbx", "[execution.sandbox.profiles.x]\nallow_network = true\n" +
			"[execution.sandbox.profiles.y]\n", ``, "", "profiles.x profiles.y"},
		"said twice": {"sbx", "allow_network = false\n[sandbox]\nallow_network = true\n", `network.allow=false`, "",
			"sandbox.allow_network"},
		"srt, everything": {"srt", `{"filesystem":{"denyRead":["/"],"allowRead":["."],"allowWrite":[]},"network":{"allowAllUnixSockets":true}}`,
			`fs.writable=[]`, "allow read $PROJECT/**;deny read /**", "allowAllUnixSockets"},
		"claude sandbox": {"claude",
			`{"permissions":{"allow":["Read(src/)","Read(*.md)"],"ask":["Edit(ci/x)"],"deny":["Read(.env)","Edit(/lib)","Read(a?)","Read(!b)"]},"sandbox":{"enabled":false,"excludedCommands":["docker *"],"failIfUnavailable":true,"allowUnsandboxedCommands":true,"network":{"allowLocalBinding":true},"credentials":{"files":[{"path":"~/.k","mode":"deny"},{"path":"m","mode":"mask"}],"envVars":[{"name":"T","mode":"deny"}]}}}`,
			`sandbox.fallback_on_unavailable="block" fs.secrets=["/home/u/.k", "/home/u/proj/m"] env.deny=["T"]`,
			"allow read $PROJECT/**/src/**;allow read $PROJECT/**/*.md;ask write $PROJECT/ci/x/**;deny read " +
				"$PROJECT/**/.env/**;deny write $PROJECT/lib/**;deny read /home/u/proj/ci/x/**/.env/**",
			"a? !b sandbox.enabled excludedCommands allowUnsandboxedCommands allowLocalBinding not+masked"},
		"claude denies first": {"claude",
			`{"permissions":{"allow":["Read(~/x/y/**)","Read(./src/**)","WebFetch(domain:a.b.c)","Edit(//e/f)"],"ask":["WebFetch(domain:*.b.c)","Edit(//e/**)"],"deny":["Read(~/x/**)","Read(.env)"]}}`,
			``, "allow read $PROJECT/src/**;ask connect *.b.c;ask write /e/**;deny read ~/x/**;deny read " +
				"$PROJECT/**/.env/**;deny read /home/u/proj/src/**/.env/**", "~/x/y/** a.b.c /e/f"},
		"srt denies first": {"srt", `{"filesystem":{"denyRead":["~"],"allowRead":["."],"allowWrite":[".","~/out","/a/b"],"denyWrite":["/a"]}}`,
			``, "allow read $PROJECT/**;allow write $PROJECT/**;deny read ~/**;deny write /a/**", "~/out/** /a/b/**"},
		"codex wildcards first": {"codex:p", "[permissions.p.filesystem.\":workspace_roots\"]\n\".\" = \"write\"\nsrc = " +
			"\"write\"\n\"**/*.env\" = \"deny\"\n", ``, "deny read $PROJECT/**/*.env/**;allow write $PROJECT/src/**;deny " +
			"read /home/u/proj/src/**/*.env/**", ""},
		"codex read-only keeps": {"codex", "sandbox_mode = \"read-only\"\n[sandbox_workspace_write]\nwritable_roots = " +
			"[\"/w\"]\nnetwork_access = true\n", `fs.writable=[]`, "", "sandbox_workspace_write"},
		"codex profile": {"codex", "default_permissions = \"p\"\n[permissions.p]\nextends = \"base\"\n" +
			"[permissions.p.filesystem]\n\":root\" = \"read\"\n\"~/in\" = \"read\"\n[permissions.base]\nextends = " +
			"\":workspace\"\n[permissions.base.filesystem]\n\"~/in\" = \"write\"\n\"~/no\" = \"none\"\n" +
			"[permissions.base.network]\nenabled = true\nmode = \"limited\"\ndomains = { \"**.a.b\" = \"allow\", \"c.a.b\" = " +
			"\"deny\" }\n[permissions.other]\n", `network.hosts=["a.b", "*.a.b"]`,
			"allow read ~/in/**;deny write ~/in/**;deny read ~/no/**;deny connect c.a.b", ":root network.mode other"},
		"codex profile for reading": {"codex:p", "[permissions.p.filesystem]\n\":minimal\" = \"read\"\n" +
			"[permissions.p.filesystem.\":workspace_roots\"]\n\".\" = \"read\"\nsrc = \"write\"\n[permissions.p.network]\n" +
			"enabled = false\n", `fs.writable=[] network.allow=false`,
			"allow read $PROJECT/**;deny write $PROJECT/**;allow write $PROJECT/src/**", ""},
		"codex builtin": {"codex", `default_permissions = ":read-only"`, `fs.writable=[]`, "", ""},
		"codex all":     {"codex", `default_permissions = ":danger-full-access"`, ``, "", "danger-full-access"},
		"codex circle": {"codex", "default_permissions = \"a\"\n[permissions.a]\nextends = \"b\"\n[permissions.b]\n" +
			"extends = \"a\"\n", ``, "", "extends+itself"},
		"codex both": {"codex", "sandbox_mode = \"workspace-write\"\ndefault_permissions = \"p\"\n[permissions.p]\n", ``, "",
			"default_permissions permissions.p"},
		"codex requirements": {"codex", "allowed_sandbox_modes = [\"read-only\"]\nallowed_approval_policies = " +
			"[\"never\"]\n[permissions.filesystem]\ndeny_read = [\"~/k\", \"**/*.pem\"]\n[experimental_network]\nenabled = " +
			"true\ndenied_domains = [\"e.f\"]\n[[rules.prefix_rules]]\ndecision = \"forbidden\"\n",
			`sandbox.prompt="deny" fs.writable=[]`,
			"deny connect e.f;deny read ~/k/**;deny read $PROJECT/**/*.pem/**", "rules"},
		"cursor": {"cursor",
			`{"type":"workspace_readwrite","additionalReadwritePaths":["~/w"],"additionalReadonlyPaths":["/opt/r"],"disableTmpWrite":true,"enableSharedBuildCache":true,"networkPolicy":{"default":"deny","allow":["a.b","10.0.0.0/8"],"deny":["c.a.b"]}}`,
			`network.hosts=["a.b", "10.0.0.0/8"]`,
			"allow read /opt/r/**;deny write /opt/r/**;allow write ~/w/**;deny write /tmp/**;deny connect c.a.b",
			"enableSharedBuildCache"},
		"cursor for reading": {"cursor", `{"type":"workspace_readonly","additionalReadwritePaths":["/w"],"networkPolicy":{}}`,
			`fs.writable=[] network.allow=false`, "", "additionalReadwritePaths"},
		"cursor without": {"cursor", `{"type":"insecure_none","networkPolicy":{"default":"allow"}}`, `network.allow=true`, "",
			"type"},
		"null": {"srt", `{"network":null,"filesystem":{"denyRead":[null]}}`, "", "", "not+nothing one+is+nothing"},
		"bad values": {"sbx", `{"workdir":1,"read_only_paths":["rel"],"timeout_seconds":"x"}`, "", "",
			"workdir read_only_paths timeout_seconds"},
	} {
		im, err := Import(c.format, []byte(c.text), testVars())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, k := range strings.Fields(c.unmapped) {
			found := false
			for _, u := range im.Unmapped {
				found = found || strings.Contains(u.Name+u.Why, strings.ReplaceAll(k, "+", " ")) && u.Why != ""
			}
			if !found {
				t.Errorf("%s: %s is not listed in %v", name, k, im.Unmapped)
			}
		}
		if c.unmapped == "" && len(im.Unmapped) != 0 {
			t.Errorf("%s: %v", name, im.Unmapped)
		}
		var rules []string
		for _, r := range im.Rules {
			rules = append(rules, r.String())
		}
		if got := strings.Join(rules, ";"); got != c.rules {
			t.Errorf("%s: rules\n%s\nwant\n%s", name, got, c.rules)
		}
		// What was imported must be a file that loads, with the same values.
		l, err := policy.ParseConfig([]byte(im.ConfigTOML()), "p", policy.ScopeUser, testVars())
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, im.ConfigTOML())
			continue
		}
		var got []string
		for _, k := range policy.Keys() {
			for _, s := range l.Settings {
				if s.Key == k {
					got = append(got, k+"="+show(s.Value))
				}
			}
		}
		want := splitSettings(c.config)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: config\n%s\nwant\n%s", name, strings.Join(got, " "), c.config)
		}
		if again, err := policy.ParseRules([]byte(im.PolicyTOML()), "p", policy.ScopeUser,
			testVars()); err != nil || len(again) != len(im.Rules) {
			t.Errorf("%s: %v\n%s", name, err, im.PolicyTOML())
		}
	}
	for _, bad := range [][2]string{{"nope", "{}"}, {"srt", "{"}, {"srt:p", "{}"}, {"codex", "x = ["},
		{"codex", "x=" + strings.Repeat("[",
			1000)}} {
		if _, err := Import(bad[0], []byte(bad[1]), testVars()); err == nil {
			t.Errorf("%v accepted", bad)
		}
	}
}

func splitSettings(s string) []string {
	var out []string
	for _, f := range strings.Fields(s) {
		if i := strings.IndexByte(f, '='); i > 0 && strings.Contains(f[:i], ".") && !strings.HasPrefix(f, "\"") {
			out = append(out, f)
		} else {
			out[len(out)-1] += " " + f
		}
	}
	return out
}

// show writes a value as the table of TestImport does.
func show(v any) string {
	switch x := v.(type) {
	case string:
		return strconv.Quote(x)
	case []string:
		q := make([]string, len(x))
		for i, s := range x {
			q[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(q, ", ") + "]"
	}
	return fmt.Sprint(v)
}

func TestExport(t *testing.T) {
	vars := testVars()
	user, err := policy.ParseConfig([]byte("[network]\nhosts = [\"a.b\"]\n"), "config.toml", policy.ScopeUser, vars)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.ParseRules([]byte("[[rule]]\npath = \"/srv/**\"\ndecision = \"deny\"\n[[rule]]\nhost = \"x.y\"\n"+
		"decision = \"ask\"\n"), "policy.toml", policy.ScopeUser, vars)
	if err != nil {
		t.Fatal(err)
	}
	e, err := policy.Merge(policy.Layers{User: user, Vars: vars}, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := policy.Store{}.Replace(policy.ScopeUser, rules)
	text, missing, err := Export("srt", e, store, []string{".env*"})
	if err != nil || len(missing) != 1 || !strings.Contains(text, `"a.b"`) || !strings.Contains(text, `/.ssh`) ||
		!strings.Contains(text, `/**/.env*`) || !strings.Contains(text, `"/srv"`) {
		t.Errorf("%v %v\n%s", missing, err, text)
	}
	text, missing, err = Export("toml", e, store, nil)
	if err != nil || len(missing) != 0 || text != edit.Text(e, store) || !strings.Contains(text, "/srv/**") {
		t.Errorf("%v %v\n%s", missing, err, text)
	}
	if _, _, err := Export("x", e, store, nil); err == nil {
		t.Error("unknown format accepted")
	}
}
