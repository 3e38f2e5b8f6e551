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
	text := Text(e, l.Policy)
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
}

// textOf does not wait on a FIFO.
func textOf(path string) string {
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	b, _ := os.ReadFile(path)
	return string(b)
}
