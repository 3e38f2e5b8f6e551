package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/policy/pathname"
)

const sample = `# my rules
version = 1   # the format

# cargo
[[rule]]
path = "~/.cargo/**"  # all of it
access = "read"
decision = "allow"

# never
[[rule]]
host = "evil.test"
decision = "deny"
reason = """two
lines"""

# the end
`

func target(t *testing.T) Target {
	return Target{Dir: t.TempDir(), Name: "policy.toml", Scope: ScopeUser, UID: os.Geteuid()}
}

func TestAddKeepsText(t *testing.T) {
	tg := target(t)
	os.WriteFile(tg.Path(), []byte(sample), 0o644)
	r := Rule{Kind: KindPath, Pattern: pathname.Escape("/srv/\xffé\u202e\"*"), Access: Write, Decision: Allow,
		Reason: "said \"yes\"\n\x1b", By: "uid 1000",
		Added: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	if err := AddRule(tg, r, testVars()); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(tg.Path())
	if !strings.HasPrefix(string(got), sample) {
		t.Fatalf("the text before changed:\n%s", got)
	}
	for _, c := range got[len(sample):] {
		if c != '\n' && (c < 0x20 || c >= 0x7f) {
			t.Fatalf("raw byte %#x in\n%s", c, got)
		}
	}
	rules, _, err := tg.read(got, testVars())
	if err != nil || len(rules) != 3 {
		t.Fatal(rules, err)
	}
	last := rules[2]
	if !last.path.Match("/srv/\xffé\u202e\"*") || last.Reason != r.Reason || !last.Expires.Equal(r.Expires) ||
		!last.Added.Equal(r.Added) || last.By != r.By || last.Access != Write {
		t.Fatalf("%+v", last)
	}
	st, _ := os.Stat(tg.Path())
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	// The same question answered again replaces, it does not pile up.
	r.Decision = Deny
	if err := AddRule(tg, r, testVars()); err != nil {
		t.Fatal(err)
	}
	got, _ = os.ReadFile(tg.Path())
	if rules, _, _ := tg.read(got, testVars()); len(rules) != 3 || rules[2].Decision != Deny ||
		!strings.HasPrefix(string(got), sample) {
		t.Fatalf("%v\n%s", rules, got)
	}
}

func TestRemoveKeepsText(t *testing.T) {
	tg := target(t)
	os.WriteFile(tg.Path(), []byte(sample), 0o600)
	rules, _, _ := tg.read([]byte(sample), testVars())
	remove := func(line int) error {
		return tg.Edit(Removing(tg, testVars(), func(r Rule) bool { return r.Origin.Line == line }))
	}
	if err := remove(99); err == nil || !strings.Contains(err.Error(), "no such rule") {
		t.Error(err)
	}
	if err := remove(rules[1].Origin.Line); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(tg.Path())
	want := strings.Replace(sample,
		"[[rule]]\nhost = \"evil.test\"\ndecision = \"deny\"\nreason = \"\"\"two\nlines\"\"\"\n", "", 1)
	if string(got) != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if err := remove(rules[0].Origin.Line); err != nil {
		t.Fatal(err)
	}
	for _, comment := range []string{"# my rules", "# the format", "# cargo", "# never", "# the end"} {
		got, _ = os.ReadFile(tg.Path())
		if !strings.Contains(string(got), comment) {
			t.Errorf("lost %q:\n%s", comment, got)
		}
	}
}

func TestEditRefuses(t *testing.T) {
	r := Rule{Kind: KindPath, Pattern: "/x", Decision: Deny}
	for name, c := range map[string]struct {
		make func(tg *Target)
		want string
	}{
		"link":   {func(tg *Target) { os.Symlink("/etc/passwd", tg.Path()) }, "symbolic link"},
		"fifo":   {func(tg *Target) { unix.Mkfifo(tg.Path(), 0o600) }, "regular"},
		"broken": {func(tg *Target) { os.WriteFile(tg.Path(), []byte("rule = ["), 0o600) }, "policy.toml:1"},
		"inline": {func(tg *Target) { os.WriteFile(tg.Path(), []byte("rule = [{path='/y',decision='deny'}]\n"), 0o600) },
			"write [[rule]]"},
		"open":      {func(tg *Target) { os.WriteFile(tg.Path(), nil, 0o600); os.Chmod(tg.Path(), 0o622) }, "chmod go-w"},
		"dir open":  {func(tg *Target) { os.Chmod(tg.Dir, 0o777) }, "chmod go-w"},
		"dir link":  {func(tg *Target) { os.Symlink(tg.Dir, tg.Dir+"/l"); tg.Dir += "/l" }, "opening its folder"},
		"lock link": {func(tg *Target) { os.Symlink("/tmp/x", tg.Dir+"/.policy.toml.lock") }, "lock"},
	} {
		tg := target(t)
		c.make(&tg)
		before := textOf(tg.Path())
		if err := AddRule(tg, r, testVars()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if after := textOf(tg.Path()); after != before {
			t.Errorf("%s: the file changed", name)
		}
		if tmp, _ := filepath.Glob(tg.Dir + "/.*.tmp"); len(tmp) != 0 {
			t.Errorf("%s: left %v", name, tmp)
		}
	}
	if err := AddRule(target(t), Rule{Kind: KindPath, Pattern: "x", Decision: Deny}, testVars()); err == nil {
		t.Error("a bad rule was stored")
	}
	if os.Geteuid() == 0 {
		tg := target(t)
		os.WriteFile(tg.Path(), nil, 0o600)
		os.Chown(tg.Path(), 1000, 0)
		if err := AddRule(tg, r, testVars()); err == nil || !strings.Contains(err.Error(), "owned by uid 1000") {
			t.Error(err)
		}
	}
}

func TestEditMode(t *testing.T) {
	tg := target(t)
	tg.Scope = ScopeOrg
	if err := AddRule(tg, Rule{Kind: KindPath, Pattern: "/x", Decision: Deny, Final: true}, testVars()); err != nil {
		t.Fatal(err)
	}
	if st, _ := os.Stat(tg.Path()); st.Mode().Perm() != 0o644 {
		t.Errorf("org file has mode %v: other users could not read it", st.Mode())
	}
}

func TestConcurrentEdits(t *testing.T) {
	tg := target(t)
	var wg sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		wg.Go(func() {
			errs[i] = AddRule(tg, Rule{Kind: KindPath, Pattern: "/x" + itoa(i), Decision: Deny}, testVars())
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(tg.Path())
	if rules, _, err := tg.read(data, testVars()); err != nil || len(rules) != 12 {
		t.Fatalf("%d rules, %v\n%s", len(rules), err, data)
	}
}

// A rule takes the place of one about the same things, however that one was written: else an answer that is kept would
// lose against the rule that asked.
func TestAddRuleReplacesTheSame(t *testing.T) {
	tg := Target{Dir: t.TempDir(), Name: "policy.toml", Scope: ScopeUser, UID: os.Getuid()}
	home := testVars().Home
	for _, r := range []Rule{{Kind: KindPath, Pattern: "~/m/a", Decision: Ask}, {Kind: KindPath, Pattern: "~/m/b",
		Decision: Ask}, {Kind: KindPath, Pattern: "~/m/a", Access: Write, Decision: Ask},
		{Kind: KindPath, Pattern: home + "/m/a", Decision: Allow}} {
		if err := AddRule(tg, r, testVars()); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := os.ReadFile(tg.Path())
	rules, _, err := tg.read(data, testVars())
	if err != nil || len(rules) != 3 {
		t.Fatalf("%d rules, %v\n%s", len(rules), err, data)
	}
	for _, r := range rules {
		if r.path.Match(home+"/m/a") && r.Access == Read && r.Decision != Allow {
			t.Errorf("left: %s", r)
		}
	}
}

// What a killed edit left is gone with the next, and a repository's file stays as readable as it was.
func TestEditLeavesNothing(t *testing.T) {
	for scope, want := range map[Scope]os.FileMode{ScopeUser: 0o600, ScopeProject: 0o644} {
		tg := Target{Dir: t.TempDir(), Name: "policy.toml", Scope: scope, UID: os.Getuid()}
		if err := errors.Join(os.WriteFile(tg.Path(), []byte("version = 1\n"), 0o644), os.Chmod(tg.Path(), 0o644),
			os.WriteFile(tg.Dir+"/.policy.toml.tmp", []byte("half"), 0o600),
			AddRule(tg, Rule{Kind: KindPath, Pattern: "/x", Decision: Deny}, testVars())); err != nil {
			t.Fatal(err)
		}
		list, _ := os.ReadDir(tg.Dir)
		if len(list) != 2 || list[0].Name() != ".policy.toml.lock" {
			t.Errorf("%s: left: %v", scope, list)
		}
		if st, err := os.Stat(tg.Path()); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", scope, st.Mode(), err)
		}
	}
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
		l, err := parseConfig(&source{scope: ScopeUser, path: "p", data: []byte(im.ConfigTOML())}, testVars())
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, im.ConfigTOML())
			continue
		}
		var got []string
		for _, k := range Keys() {
			for _, s := range l.Settings {
				if s.Key == k {
					got = append(got, k+"="+show(s.Value))
				}
			}
		}
		if !sameSet(got, splitSettings(c.config)) {
			t.Errorf("%s: config\n%s\nwant\n%s", name, strings.Join(got, " "), c.config)
		}
		if again, err := parsePolicy(&source{scope: ScopeUser, path: "p", data: []byte(im.PolicyTOML())},
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

func TestExportAndReplay(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeUser, "config.toml", "[network]\nhosts = [\"a.b\"]\n[sandbox]\ntimeout = \"90s\"\n[env.set]\nA = \"b\"\n")
	w.write(ScopeUser, "policy.toml",
		"[[rule]]\npath = \"/srv/**\"\ndecision = \"deny\"\n[[rule]]\nhost = \"x.y\"\ndecision = \"ask\"\n")
	l, err := Load(w.Sources)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := Merge(l, nil)
	text, missing, err := Export("toml", e, l.Policy, nil)
	if err != nil || len(missing) != 0 {
		t.Fatal(missing, err)
	}
	config, rules, _ := strings.Cut(text, "# policy.toml\n")
	w.write(ScopeUser, "config.toml", config)
	w.write(ScopeUser, "policy.toml", rules)
	l2, err := Load(w.Sources)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	e2, _ := Merge(l2, nil)
	if d := append(Diff(e, e2), DiffRules(l.Policy, l2.Policy)...); len(d) != 0 {
		t.Errorf("export changes %v", d)
	}
	text, missing, err = Export("srt", e, l.Policy, []string{".env*"})
	if err != nil || len(missing) != 1 || !strings.Contains(text, `"a.b"`) || !strings.Contains(text, `/.ssh`) ||
		!strings.Contains(text, `/**/.env*`) {
		t.Errorf("%v %v\n%s", missing, err, text)
	}
	if _, _, err := Export("x", e, l.Policy, nil); err == nil {
		t.Error("unknown format accepted")
	}
}

// textOf does not wait on a FIFO.
func textOf(path string) string {
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	b, _ := os.ReadFile(path)
	return string(b)
}
