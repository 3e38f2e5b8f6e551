package policy

import (
	"os"
	"strings"
	"testing"
)

func TestRemovingKeepsText(t *testing.T) {
	tg := target(t)
	pick := func(pattern string) func(Rule) bool { return func(r Rule) bool { return r.Pattern == pattern } }
	out, err := Removing(tg, testVars(), pick("evil.test"))([]byte(sample))
	if err != nil || strings.Contains(string(out), "evil") || !strings.Contains(string(out), "# the end") ||
		!strings.Contains(string(out), "# all of it") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := Removing(tg, testVars(), pick("nobody.test"))([]byte(sample)); err == nil ||
		!strings.Contains(err.Error(), "no such rule") {
		t.Fatal(err)
	}
	both, err := Removing(tg, testVars(), func(Rule) bool { return true })([]byte(sample))
	if err != nil || strings.Contains(string(both), "[[rule]]") || !strings.Contains(string(both), "# my rules") {
		t.Fatalf("%v\n%s", err, both)
	}
}

func TestAddSettings(t *testing.T) {
	v := testVars()
	old := "# mine\n[fs]   # files\nread_only = [\"/a\"]\n\n[limits]\npids = 7\n"
	list := []Setting{
		{Key: "fs.writable", Value: []string{v.Project, v.Home + "/out dir"}},
		{Key: "fs.read_only", Value: []string{"/b"}},
		{Key: "network.allow", Value: true},
		{Key: "limits.pids", Value: 7},
	}
	out, taken, err := AddSettings([]byte(old), "config.toml", ScopeUser, list, v)
	if err != nil {
		t.Fatal(err)
	}
	want := "# mine\n[fs]   # files\nwritable = [\"$PROJECT\", \"~/out dir\"]\nread_only = [\"/a\"]\n\n[limits]\npids " +
		"= 7\n\n[network]\nallow = true\n"
	if string(out) != want {
		t.Fatalf("got\n%s", out)
	}
	if len(taken) != 1 || taken[0].Name != "fs.read_only" || !strings.Contains(taken[0].Why, "config.toml:3") {
		t.Fatal(taken)
	}
	if _, _, err := AddSettings([]byte("fs = {read_only = []}\n"), "config.toml", ScopeUser, list[:1], v); err == nil {
		t.Fatal("a section that is written inline was extended")
	}
}

// What was pinned can be shown later, but only if it still is what was pinned.
func TestKeptBytesAreChecked(t *testing.T) {
	dir, uid := t.TempDir(), os.Geteuid()
	files := [2][]byte{nil, []byte("version = 1\n")}
	if err := Keep(dir, files, uid); err != nil {
		t.Fatal(err)
	}
	pins := Pins{"-", Hash(files[1])}
	if got, ok := Kept(dir, pins, uid); !ok || string(got[1]) != string(files[1]) || got[0] != nil {
		t.Fatalf("%q %v", got, ok)
	}
	os.WriteFile(dir+"/pinned/"+pins.Policy, []byte("version = 1 \n"), 0o600)
	if _, ok := Kept(dir, pins, uid); ok {
		t.Fatal("changed bytes were taken for the pinned ones")
	}
}

func TestReplaceLeavesTheOriginalAlone(t *testing.T) {
	s := Store{}
	r, err := NewRule(Rule{Kind: KindPath, Pattern: "/x", Decision: Deny}, testVars())
	if err != nil {
		t.Fatal(err)
	}
	next := s.Replace(ScopeUser, []Rule{r})
	if len(s.Rules()) != 0 || len(next.Rules()) != 1 || next.Rules()[0].Origin.Scope != ScopeUser {
		t.Fatal(s.Rules(), next.Rules())
	}
}
