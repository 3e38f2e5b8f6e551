//go:build linux

package selftest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/checks"
)

// notInHelper are the only checks that may be left out where sandboxes are built by sbx-helper, with the
// fact that they name. What a whole host lacks besides (a control group, nested containers) is not counted.
var notInHelper = map[string]string{"FR-27": "server: "}

// TestSelftestThroughHelper runs the acceptance checks where there are no user namespaces: every group passes.
func TestSelftestThroughHelper(t *testing.T) {
	t.Parallel()
	needHelper(t)
	dir := filepath.Join(shop.dir, "through-helper")
	if err := os.MkdirAll(filepath.Join(dir, "home"), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{shop.sbx: "sbx", shop.probe: "sbx-probe"} {
		if err := os.Link(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := shop.own(filepath.Join(dir, "home")); err != nil {
		t.Fatal(err)
	}
	args := shop.launch("4755", filepath.Join(dir, "sbx"), "selftest", "--json")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = shop.env(filepath.Join(dir, "home"), dir), dir
	out, err := cmd.Output()
	var report checks.Report
	if e := json.Unmarshal(out, &report); e != nil || err != nil {
		t.Fatalf("sbx selftest --json: %v, %v\n%s", err, e, out)
	}
	passed, skipped := map[string]bool{}, 0
	for _, r := range report.Checks {
		fact, known := notInHelper[r.ID]
		switch {
		case r.Status == checks.Pass:
			passed[r.Group] = true
		case r.Status != checks.Skip:
			t.Errorf("%s %s: expected %s, got %s, control %s (%s)", r.Status, r.ID, r.Expected, r.Got, r.Control, r.Missing)
		case strings.HasPrefix(r.Missing, "cgroup: "), strings.HasPrefix(r.Missing, "containers: "):
		case !known || !strings.HasPrefix(r.Missing, fact):
			t.Errorf("%s was left out: %s", r.ID, r.Missing)
		default:
			skipped++
		}
	}
	for _, g := range checks.Groups() {
		if !passed[g] && g != checks.Containers && slices.ContainsFunc(checks.All(), func(c checks.Check) bool {
			return c.Group == g
		}) {
			t.Errorf("no check of the group %s passed", g)
		}
	}
	if skipped != len(notInHelper) {
		t.Errorf("%d of %d checks were left out: what holds now belongs off the list", skipped, len(notInHelper))
	}
}
