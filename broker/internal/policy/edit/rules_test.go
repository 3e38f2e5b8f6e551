package edit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/policy"
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
	return Target{Dir: t.TempDir(), Name: "policy.toml", Scope: policy.ScopeUser, UID: os.Geteuid()}
}

// add writes rules as a kept answer is written.
func add(tg Target, rules ...policy.Rule) error { return tg.Edit(Adding(tg, testVars(), rules...)) }

func TestAddKeepsText(t *testing.T) {
	tg := target(t)
	os.WriteFile(tg.Path(), []byte(sample), 0o644)
	r := policy.Rule{Kind: policy.KindPath, Pattern: pathname.Escape("/srv/\xffé\u202e\"*"),
		Access: policy.Write, Decision: policy.Allow, Reason: "said \"yes\"\n\x1b", By: "uid 1000",
		Added: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	if err := add(tg, r); err != nil {
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
	rules, _, err := policy.RuleLines(got, tg.Path(), tg.Scope, testVars())
	if err != nil || len(rules) != 3 {
		t.Fatal(rules, err)
	}
	last := rules[2]
	if !last.Path().Match("/srv/\xffé\u202e\"*") || last.Reason != r.Reason || !last.Expires.Equal(r.Expires) ||
		!last.Added.Equal(r.Added) || last.By != r.By || last.Access != policy.Write {
		t.Fatalf("%+v", last)
	}
	st, _ := os.Stat(tg.Path())
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	// The same question answered again replaces, it does not pile up.
	r.Decision = policy.Deny
	if err := add(tg, r); err != nil {
		t.Fatal(err)
	}
	got, _ = os.ReadFile(tg.Path())
	rules, _, _ = policy.RuleLines(got, tg.Path(), tg.Scope, testVars())
	if len(rules) != 3 || rules[2].Decision != policy.Deny ||
		!strings.HasPrefix(string(got), sample) {
		t.Fatalf("%v\n%s", rules, got)
	}
}

func TestRemoveKeepsText(t *testing.T) {
	tg := target(t)
	os.WriteFile(tg.Path(), []byte(sample), 0o600)
	rules, _, _ := policy.RuleLines([]byte(sample), tg.Path(), tg.Scope, testVars())
	remove := func(line int) error {
		return tg.Edit(Removing(tg, testVars(), func(r policy.Rule) bool { return r.Origin.Line == line }))
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
	r := policy.Rule{Kind: policy.KindPath, Pattern: "/x", Decision: policy.Deny}
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
		if err := add(tg, r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if after := textOf(tg.Path()); after != before {
			t.Errorf("%s: the file changed", name)
		}
		if tmp, _ := filepath.Glob(tg.Dir + "/.*.tmp"); len(tmp) != 0 {
			t.Errorf("%s: left %v", name, tmp)
		}
	}
	relative := r
	relative.Pattern = "x"
	if err := add(target(t), relative); err == nil {
		t.Error("a bad rule was stored")
	}
	if os.Geteuid() == 0 {
		tg := target(t)
		os.WriteFile(tg.Path(), nil, 0o600)
		os.Chown(tg.Path(), 1000, 0)
		if err := add(tg, r); err == nil || !strings.Contains(err.Error(), "owned by uid 1000") {
			t.Error(err)
		}
	}
}

func TestEditMode(t *testing.T) {
	tg := target(t)
	tg.Scope = policy.ScopeOrg
	r := policy.Rule{Kind: policy.KindPath, Pattern: "/x", Decision: policy.Deny, Final: true}
	if err := add(tg, r); err != nil {
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
			r := policy.Rule{Kind: policy.KindPath, Pattern: "/x" + strconv.Itoa(i), Decision: policy.Deny}
			errs[i] = add(tg, r)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(tg.Path())
	if rules, _, err := policy.RuleLines(data, tg.Path(), tg.Scope, testVars()); err != nil || len(rules) != 12 {
		t.Fatalf("%d rules, %v\n%s", len(rules), err, data)
	}
}

// A rule takes the place of one about the same things, however that one was written: else an answer that is kept would
// lose against the rule that asked.
func TestAddRuleReplacesTheSame(t *testing.T) {
	tg := Target{Dir: t.TempDir(), Name: "policy.toml", Scope: policy.ScopeUser, UID: os.Getuid()}
	home := testVars().Home
	for _, r := range []policy.Rule{{Kind: policy.KindPath, Pattern: "~/m/a", Decision: policy.Ask},
		{Kind: policy.KindPath, Pattern: "~/m/b", Decision: policy.Ask},
		{Kind: policy.KindPath, Pattern: "~/m/a", Access: policy.Write, Decision: policy.Ask},
		{Kind: policy.KindPath, Pattern: home + "/m/a", Decision: policy.Allow}} {
		if err := add(tg, r); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := os.ReadFile(tg.Path())
	rules, _, err := policy.RuleLines(data, tg.Path(), tg.Scope, testVars())
	if err != nil || len(rules) != 3 {
		t.Fatalf("%d rules, %v\n%s", len(rules), err, data)
	}
	for _, r := range rules {
		if r.Path().Match(home+"/m/a") && r.Access == policy.Read && r.Decision != policy.Allow {
			t.Errorf("left: %s", r)
		}
	}
}

// What a killed edit left is gone with the next, and a repository's file stays as readable as it was.
// A rule replaces no other that outlasts it, and nothing that is for another program; see TestExceptions of policy.
func TestAddKeepsWhatLastsLonger(t *testing.T) {
	soon, late := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	path := func(d policy.Decision, until time.Time, program string) policy.Rule {
		return policy.Rule{Kind: policy.KindPath, Pattern: "~/.netrc", Access: policy.Read, Decision: d, Expires: until,
			Program: program}
	}
	never := time.Time{}
	for name, c := range map[string]struct {
		list []policy.Rule
		want string
	}{
		"an exception": {[]policy.Rule{path(policy.Deny, never, ""), path(policy.Allow, soon, "")}, "deny allow"},
		"of an exception": {[]policy.Rule{path(policy.Allow, never, ""), path(policy.Allow, late, ""),
			path(policy.Deny, soon, "")}, "allow allow deny"},
		"a longer one": {[]policy.Rule{path(policy.Deny, never, ""), path(policy.Allow, soon, ""),
			path(policy.Ask, late, "")}, "deny ask"},
		"a lasting one": {[]policy.Rule{path(policy.Deny, never, ""), path(policy.Allow, soon, ""),
			path(policy.Ask, never, "")}, "ask"},
		"the same once more": {[]policy.Rule{path(policy.Deny, soon, ""), path(policy.Allow, soon, "")}, "allow"},
		"two programs": {[]policy.Rule{path(policy.Reveal, never, "/bin/cat"), path(policy.Reveal, never, "/bin/head"),
			path(policy.Reveal, never, "/bin/cat")}, "reveal reveal"},
		"a refusal after them": {[]policy.Rule{path(policy.Reveal, never, "/bin/cat"), path(policy.Reveal, soon, "/bin/head"),
			path(policy.Deny, never, "")}, "deny"},
	} {
		tg := target(t)
		for _, r := range c.list {
			if err := add(tg, r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		text, _ := os.ReadFile(tg.Path())
		rules, err := policy.ParseRules(text, tg.Path(), tg.Scope, testVars())
		var got []string
		for _, r := range rules {
			got = append(got, r.Decision.String())
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s (%v)", name, got, c.want, err)
		}
	}
}

func TestEditLeavesNothing(t *testing.T) {
	for scope, want := range map[policy.Scope]os.FileMode{policy.ScopeUser: 0o600, policy.ScopeProject: 0o644} {
		tg := Target{Dir: t.TempDir(), Name: "policy.toml", Scope: scope, UID: os.Getuid()}
		if err := errors.Join(os.WriteFile(tg.Path(), []byte("version = 1\n"), 0o644), os.Chmod(tg.Path(), 0o644),
			os.WriteFile(tg.Dir+"/.policy.toml.tmp", []byte("half"), 0o600),
			add(tg, policy.Rule{Kind: policy.KindPath, Pattern: "/x", Decision: policy.Deny})); err != nil {
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

func TestExportAndReplay(t *testing.T) {
	w := policy.Sources{UserDir: t.TempDir(), UID: os.Geteuid(), Vars: testVars()}
	write := func(name, text string) {
		if err := os.WriteFile(w.UserDir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.toml", "[network]\nhosts = [\"a.b\"]\n[sandbox]\ntimeout = \"90s\"\n[env.set]\nA = \"b\"\n")
	write("policy.toml",
		"[[rule]]\npath = \"/srv/**\"\ndecision = \"deny\"\n[[rule]]\nhost = \"x.y\"\ndecision = \"ask\"\n")
	l, err := policy.Load(w)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := policy.Merge(l, nil)
	text := Text(e, l.Policy)
	config, rules, _ := strings.Cut(text, "# policy.toml\n")
	write("config.toml", config)
	write("policy.toml", rules)
	l2, err := policy.Load(w)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	e2, _ := policy.Merge(l2, nil)
	if d := append(policy.Diff(e, e2), policy.DiffRules(l.Policy, l2.Policy)...); len(d) != 0 {
		t.Errorf("export changes %v", d)
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

// A rule that replaces another keeps its label, and what it accepts.
func TestLabelsStay(t *testing.T) {
	old := []byte("version = 1\n" +
		"[[rule]]\npath = \"/h/c/**\"\naccess = \"read\"\ndecision = \"ask\"\nlabel = \"clients\"\n" +
		"[[rule]]\nhost = \"a.test\"\ndecision = \"ask\"\naccepts = [\"x\"]\n")
	out := old
	for _, r := range []policy.Rule{
		{Kind: policy.KindPath, Pattern: "/h/c/**", Access: policy.Read, Decision: policy.Allow},
		{Kind: policy.KindHost, Pattern: "a.test", Access: policy.Connect, Decision: policy.Allow, Accepts: []string{"y"}}} {
		var err error
		if out, err = addRule(out, Target{Scope: policy.ScopeUser}, r, policy.Vars{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := policy.ParseRules(out, "/h/policy.toml", policy.ScopeUser, policy.Vars{})
	if err != nil || len(list) != 2 || list[0].Label != "clients" || list[0].Decision != policy.Allow ||
		!slices.Equal(list[1].Accepts, []string{"y", "x"}) {
		t.Errorf("%v, %v:\n%s", list, err, out)
	}
}

func FuzzPolicy(f *testing.F) {
	for _, s := range []string{"version=1\n[[rule]]\npath='/x'\ndecision='deny'\nexpires=2027-01-01T00:00:00Z\n",
		"rule=[{host='a.b', decision='ask'}]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := policy.ParseRules([]byte(text), "p", policy.ScopeUser, testVars())
		if err != nil {
			return
		}
		again, err := policy.ParseRules([]byte(FormatRules(rules)), "p", policy.ScopeUser, testVars())
		if err != nil || len(again) != len(rules) {
			t.Fatalf("written as\n%s\n%v", FormatRules(rules), err)
		}
		for i := range rules {
			if rules[i].String() != again[i].String() || !rules[i].Expires.Truncate(time.Second).Equal(again[i].Expires) {
				t.Fatalf("%v became %v", rules[i], again[i])
			}
		}
	})
}

func testVars() policy.Vars {
	return policy.Vars{Home: "/home/u", Project: "/home/u/proj", TmpDir: "/tmp", XDGConfigHome: "/home/u/.config"}
}

// A decoy is kept when its rule is written again.
func TestDecoysStay(t *testing.T) {
	vars := testVars()
	r, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: "~/.netrc", Decision: policy.Deny,
		Decoy: true}, vars)
	if err != nil {
		t.Fatal(err)
	}
	plain := policy.Rule{Kind: policy.KindPath, Decision: policy.Deny}
	if keep(&plain, &r); !plain.Decoy {
		t.Error("a refusal that replaces it has no decoy any more")
	}
	plain = policy.Rule{Kind: policy.KindPath, Decision: policy.Allow}
	if keep(&plain, &r); plain.Decoy {
		t.Error("what is allowed has a decoy")
	}
}

// What is written reads back, labels and the program of a secret as well.
func TestRulesReadBack(t *testing.T) {
	for _, r := range []policy.Rule{
		{Kind: policy.KindPath, Pattern: "~/c/**", Decision: policy.Ask, Label: "clients.acme-1"},
		{Kind: policy.KindHost, Pattern: "a.test", Decision: policy.Allow,
			Accepts: []string{"clients", "secret:~/.netrc", "credential:gh"}},
		{Kind: policy.KindSocket, Pattern: "/run/x.sock", Decision: policy.Allow, Accepts: []string{"*"}},
		{Kind: policy.KindPath, Pattern: "~/.netrc", Decision: policy.Reveal, Program: "/usr/bin/cat"},
		{Kind: policy.KindPath, Pattern: "~/.netrc", Decision: policy.Deny, Decoy: true},
	} {
		r, err := policy.NewRule(r, testVars())
		if err != nil {
			t.Fatal(err)
		}
		again, err := policy.ParseRules([]byte(FormatRules([]policy.Rule{r})), "p", policy.ScopeUser, testVars())
		if err != nil || len(again) != 1 || again[0].String() != r.String() {
			t.Errorf("%s: written and read: %v, %v", r, again, err)
		}
	}
}
