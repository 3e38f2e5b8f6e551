package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
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
				"read $PROJECT/.env;deny write /etc/**", "Bash(git:*) WebSearch model permissions.defaultMode"},
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
				found = found || strings.Contains(u.Name+u.Why, k) && u.Why != ""
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
	for _, bad := range [][2]string{{"nope", "{}"}, {"srt", "{"}, {"codex", "x = ["}, {"codex", "x=" + strings.Repeat("[",
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
	if err != nil || len(missing) != 0 || text != policy.Text(e, store) || !strings.Contains(text, "/srv/**") {
		t.Errorf("%v %v\n%s", missing, err, text)
	}
	if _, _, err := Export("x", e, store, nil); err == nil {
		t.Error("unknown format accepted")
	}
}
