package guard

import (
	"slices"
	"testing"
)

// TestNeutral: what makes git run something is listed and left out; what describes the repository stays as git reads
// it.
func TestNeutral(t *testing.T) {
	t.Parallel()
	const harmless = "[core]\n\trepositoryformatversion = 0\n[remote \"a\\\"b\"]\n\turl = " +
		"https://example.org/x\n\tfetch = +refs/heads/*:refs/remotes/o/*\n[core]\n\tbare\n"
	const evil = "[core]\n\tfsmonitor = \"x # y\"\n\thooksPath = h\n[alias]\n\tst = !x\n[filter \"f\"]\n\tclean = x\n"
	if keys, err := Acting(".git/config",
		[]byte("[core]\n\trepositoryformatversion = 0\n\tbare = false\n[user]\n\tname = A\n")); err != nil || len(keys) != 0 {
		t.Errorf("harmless: %q, %v", keys, err)
	}
	keys, err := Acting(".git/config", []byte(harmless+evil))
	for _, k := range []string{"core.fsmonitor", "core.hookspath", "alias.st", "filter.f.clean"} {
		if !slices.Contains(keys, k) {
			t.Errorf("%s is not listed in %q, %v", k, keys, err)
		}
	}
	out, err := Neutral(".git/config", []byte(harmless+evil))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Acting(".git/config", out); err != nil || !slices.Equal(again, []string{"core.hookspath"}) {
		t.Errorf("acting afterwards: %q, %v in\n%s", again, err, out)
	}
	before, _ := parse([]byte(harmless))
	after, _ := parse(out)
	for _, s := range before.settings {
		acting, _ := Acting(".git/config", []byte(harmless))
		if !slices.Contains(acting, s.key) && !slices.Contains(after.settings, s) {
			t.Errorf("%v is gone from\n%s", s, out)
		}
	}
	if _, err := Neutral(".git/config", []byte("[broken")); err == nil {
		t.Error("what is not understood is not made harmless")
	}
}
