//go:build linux

package rules

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy"
)

// files are those of a user with a project, both empty.
func files(t *testing.T) *Files {
	t.Helper()
	top := t.TempDir()
	for _, d := range []string{"/project/.sbx", "/state"} {
		if err := os.MkdirAll(top+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return &Files{Sources: policy.Sources{UserDir: top + "/config", ProjectDir: top + "/project", TrustDir: top + "/state",
		UID: os.Getuid(), Vars: policy.Vars{Home: top, Project: top + "/project"}}}
}

func path(t *testing.T, x *Files, pattern string, d policy.Decision) []policy.Rule {
	t.Helper()
	r, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: pattern, Access: policy.Read, Decision: d,
		By: "terminal"}, x.Sources.Vars)
	if err != nil {
		t.Fatal(err)
	}
	return []policy.Rule{r}
}

// decision is what the files say about a path now.
func decision(t *testing.T, x *Files, p string) string {
	t.Helper()
	layers, err := policy.Load(x.Sources)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := layers.Policy.Match(policy.Query{Kind: policy.KindPath, Path: p, Access: policy.Read, Now: time.Now()})
	if !ok {
		return "none"
	}
	return r.Decision.String()
}

// TestAnswersAreKept: a lasting answer is in the file when Store returns, with ~ for the home, and counts.
func TestAnswersAreKept(t *testing.T) {
	x := files(t)
	home := x.Sources.Vars.Home
	if err := x.Store("user", path(t, x, home+"/notes/a", policy.Allow)); err != nil {
		t.Fatal(err)
	}
	if got := decision(t, x, home+"/notes/a"); got != "allow" {
		t.Errorf("kept as %q", got)
	}
	b, err := os.ReadFile(x.Sources.UserDir + "/policy.toml")
	if err != nil || !strings.Contains(string(b), "~/notes/a") || !strings.Contains(string(b), "terminal, uid ") {
		t.Errorf("%v: %s", err, b)
	}
}

// TestSeveralAnswersAtOnce: answers that are kept together are all in the file, or none is.
func TestSeveralAnswersAtOnce(t *testing.T) {
	x := files(t)
	home := x.Sources.Vars.Home
	list := append(path(t, x, home+"/a", policy.Allow), path(t, x, home+"/b", policy.Deny)...)
	bad := append(slices.Clone(list), policy.Rule{Kind: policy.KindPath, Pattern: "b", Decision: policy.Allow})
	if err := x.Store("user", bad); err == nil || decision(t, x, home+"/a") != "none" {
		t.Errorf("%v: half a list was kept", err)
	}
	if err := x.Store("user", list); err != nil {
		t.Fatal(err)
	}
	if a, b := decision(t, x, home+"/a"), decision(t, x, home+"/b"); a != "allow" || b != "deny" {
		t.Errorf("kept as %q and %q", a, b)
	}
	if list[0].By != "terminal" {
		t.Errorf("the caller's list says %q", list[0].By)
	}
}

// TestUntrustedProjectsTakeNoPermission: a project's file that the user has not pinned may be narrowed and not widened;
// one that he has stays pinned.
func TestUntrustedProjectsTakeNoPermission(t *testing.T) {
	x := files(t)
	dir := x.Sources.ProjectDir
	if err := os.WriteFile(dir+"/.sbx/policy.toml", []byte("# somebody else's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := x.Store("project", path(t, x, dir+"/a", policy.Allow))
	if err == nil || !strings.Contains(err.Error(), "not trusted") || decision(t, x, dir+"/a") != "none" {
		t.Errorf("allowing in an untrusted file: %v, %s", err, decision(t, x, dir+"/a"))
	}
	if err := x.Store("project", path(t, x, dir+"/b", policy.Deny)); err != nil || decision(t, x, dir+"/b") != "deny" {
		t.Errorf("denying in an untrusted file: %v, %s", err, decision(t, x, dir+"/b"))
	}
	y := files(t) // nothing there yet: what is written is the user's own
	if err := y.Store("project", path(t, y, y.Sources.ProjectDir+"/a", policy.Allow)); err != nil {
		t.Fatal(err)
	}
	if got := decision(t, y, y.Sources.ProjectDir+"/a"); got != "allow" {
		t.Errorf("in the user's own file: %q", got)
	}
}

// TestUndoTrustsNothingNew: taking an answer back leaves the project's files trusted only where they are what the user
// trusted. What came to be beside the answer since, as by a git pull, is not pinned with it, nor by another answer.
func TestUndoTrustsNothingNew(t *testing.T) {
	for name, config := range map[string]string{"nothing new": "", "another file": "[fs]\nread_only = [\"~/\"]\n"} {
		x := files(t)
		dir := x.Sources.ProjectDir
		rule := path(t, x, dir+"/a", policy.Allow)
		if err := x.Store("project", rule); err != nil {
			t.Fatal(err)
		}
		if config != "" {
			if err := os.WriteFile(dir+"/.sbx/config.toml", []byte(config), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := x.Store("project", path(t, x, dir+"/b", policy.Allow)); err == nil {
				t.Errorf("%s: an answer was kept in it", name)
			}
		}
		if err := x.Unstore("", rule); err != nil {
			t.Fatal(err)
		}
		if l, err := policy.Load(x.Sources); err != nil || l.Trusted != (config == "") {
			t.Errorf("%s: trusted %v, %v", name, l.Trusted, err)
		}
	}
}

// TestNowhereToKeep: an answer that cannot be kept says where it could not.
func TestNowhereToKeep(t *testing.T) {
	x := files(t)
	rule := path(t, x, "/a", policy.Deny)
	x.Sources.UserDir, x.Sources.ProjectDir = "", ""
	for where, want := range map[string]string{"user": "set HOME", "project": "no project here",
		"elsewhere": "no policy file is called elsewhere"} {
		if err := x.Store(where, rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
	}
}

// TestFreshFollowsTheFiles: files are read when one has changed, and only then; one that cannot be read stays an error
// until it is mended, so that no older rule goes on counting unseen.
func TestFreshFollowsTheFiles(t *testing.T) {
	x := files(t)
	fresh := func(changed, good bool) {
		t.Helper()
		_, c, err := x.Fresh()
		if c != changed || (err == nil) != good {
			t.Errorf("changed %v (want %v), error %v", c, changed, err)
		}
	}
	fresh(true, true)
	fresh(false, true)
	if err := x.Store("user", path(t, x, "/a", policy.Deny)); err != nil {
		t.Fatal(err)
	}
	fresh(true, true)
	file := x.Sources.UserDir + "/policy.toml"
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("[[rule]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh(true, false)
	fresh(false, false)
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh(true, true)
}

// TestPlanned: the rules are those of the plan until one comes, or the trust goes in the project's, whose text stays.
func TestPlanned(t *testing.T) {
	for name, change := range map[string]func(x *Files) error{
		"nothing": func(*Files) error { return nil },
		"another rule": func(x *Files) error {
			return x.Store("user", path(t, x, "/b", policy.Deny))
		},
		"no trust": func(x *Files) error { return os.RemoveAll(x.Sources.TrustDir) },
	} {
		x := files(t)
		dir := x.Sources.ProjectDir
		if err := x.Store("project", path(t, x, dir+"/a", policy.Allow)); err != nil {
			t.Fatal(err)
		}
		layers, err := policy.Load(x.Sources)
		if err != nil {
			t.Fatal(err)
		}
		x.Settings.Layers = layers
		if _, _, err := x.Fresh(); err != nil || !x.Planned() {
			t.Errorf("%s: they are not those of the plan at first: %v", name, err)
		}
		if err := change(x); err != nil {
			t.Fatal(err)
		}
		if _, _, err := x.Fresh(); err != nil || x.Planned() != (name == "nothing") {
			t.Errorf("%s: planned %v, %v", name, x.Planned(), err)
		}
	}
}
