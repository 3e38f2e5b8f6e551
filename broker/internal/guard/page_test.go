package guard_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/guard"
)

var update = flag.Bool("update", false, "rewrite the page")

const page = "../../../docs/guarded-names.md"

// tableOf lists names by why they are guarded.
func tableOf(rules []guard.Rule) string {
	var order []string
	names := map[string][]string{}
	for _, r := range rules {
		name := strings.TrimPrefix(r.Pattern, "**/")
		if r.Action == guard.Allow || strings.HasPrefix(name, ".git/") { // git.md says what holds in a repository
			continue
		}
		if names[r.Why] == nil {
			order = append(order, r.Why)
		}
		names[r.Why] = append(names[r.Why], "`"+name+"`")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| what acts upon it outside | names |\n|---|---|\n")
	for _, why := range order {
		fmt.Fprintf(&b, "| %s | %s |\n", why, strings.Join(names[why], " "))
	}
	return b.String()
}

// TestPage: the page has the names that are guarded, all of them and no others.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for _, table := range []struct {
		mark  string
		rules []guard.Rule
	}{{"anywhere", guard.BuiltIn()}, {"home", guard.Home()}} {
		head, rest, ok := strings.Cut(want, "<!-- "+table.mark+" -->\n")
		_, tail, closed := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !closed {
			t.Fatalf("%s has no table %q", page, table.mark)
		}
		want = head + "<!-- " + table.mark + " -->\n" + tableOf(table.rules) + "<!-- end -->\n" + tail
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the tables say: go test ./broker/internal/guard -run TestPage -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
