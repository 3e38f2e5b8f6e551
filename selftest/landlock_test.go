//go:build linux

package selftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/selftest/checks"
)

// lostInLandlock are the acceptance checks that fail there, with the loss that a run prints, or what docs/backends.md
// says. NT-24 and the last two of /tmp expect less to be closed than is.
func lostInLandlock() map[string]string {
	return map[string]string{
		"FR-20": "processes: ", "FR-37": "processes: ", "NS-09": "processes: ",
		"FR-33": "absence: ", "FW-18": "absence: ", "FW-20": "absence: ",
		"NT-24": "loopback and sockets: ", "RS-04": "/tmp, /dev/shm", "RS-04-inodes": "/tmp, /dev/shm",
		"NS-01": "docs: The bounding set of capabilities stays as it was",
		"RS-09": "docs: A handler without `SA_RESTART` may then see EINTR",
	}
}

// TestSelftestThroughLandlock runs the acceptance checks there, but for those of options that are refused.
func TestSelftestThroughLandlock(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	needScopes(t)
	dir := filepath.Join(shop.dir, "through-landlock")
	home := filepath.Join(dir, "home")
	must(t, os.MkdirAll(filepath.Join(home, "project"), 0o755))
	for from, to := range map[string]string{shop.sbx: "sbx", shop.probe: "sbx-probe"} {
		must(t, os.Link(from, filepath.Join(dir, to)))
	}
	must(t, os.WriteFile(filepath.Join(home, "project/.env"), nil, 0o644)) // so that opens are reported
	must(t, shop.own(home))
	run := func(args ...string) (stdout, stderr []byte) {
		cmd := exec.Command(filepath.Join(dir, "sbx"), args...)
		var errs bytes.Buffer
		cmd.Env, cmd.Dir = shop.env(home, dir), filepath.Join(home, "project")
		cmd.SysProcAttr, cmd.Stderr = shop.attr(), &errs
		out, _ := cmd.Output()
		return out, errs.Bytes()
	}
	groups := []string{checks.Process, checks.Filesystem, checks.Secrets, checks.Network, checks.Seccomp,
		checks.Privileges, checks.Debug, checks.Terminal, checks.Lifecycle, checks.Resources}
	out, errs := run("selftest", "--backend", "landlock", "--json", "--only", strings.Join(groups, ","))
	var report checks.Report
	if err := json.Unmarshal(out, &report); err != nil || report.Summary.Pass < 80 {
		t.Fatalf("sbx selftest --backend landlock: %v\n%.3000s\n%s", err, out, errs)
	}
	_, losses := run("run", "--static", "--backend", "landlock", "--", "true")
	page, err := os.ReadFile("../docs/backends.md")
	must(t, err)
	for _, r := range report.Checks {
		loss, lost := lostInLandlock()[r.ID]
		said, doc := strings.CutPrefix(loss, "docs: ")
		switch {
		case r.Status == checks.Skip, r.ID == "RS-09" && r.Status == checks.Pass: // which only a busy host shows
		case lost != (r.Status == checks.Fail) || r.Status == checks.Broken:
			t.Errorf("%s %s: expected %s, got %s (%s): what holds belongs off the list", r.Status, r.ID, r.Expected, r.Got,
				r.Missing)
		case doc && !bytes.Contains(page, []byte(said)), !doc && !bytes.Contains(losses, []byte("sbx: "+loss)):
			t.Errorf("%s: the loss is not named: %q\n%s", r.ID, loss, losses)
		}
	}
}

// TestLandlockWithoutScopes: where Landlock knows no signals (before ABI 6) nothing outlives a session either, also if
// the program ends or stops process 1, which it can there. What is left is killed one by one, and never by a signal to
// all processes, which would be all of the user's.
func TestLandlockWithoutScopes(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	dir := layersDir(t, "scopes")
	home, project := sandboxHome(t)
	bystander := startAsUser(t, home, project, "sleep", fmt.Sprintf("93.%d", os.Getpid()))
	for n, c := range []struct {
		what, program string
		options       []string
		status        int
	}{
		{"leaves others behind", "exit 3", nil, 3},
		{"goes on for too long", "sleep %[1]s; sleep %[1]s", []string{"--timeout", "1s"}, 124},
		{"kills process 1", "kill -KILL $PPID; sleep %[1]s", nil, 137},
		{"stops process 1", "kill -STOP $PPID; sleep %[1]s", []string{"--timeout", "1s"}, 124},
	} {
		sleep := fmt.Sprintf("92%d.%d", n, os.Getpid())
		program := c.program
		if strings.Contains(program, "%") {
			program = fmt.Sprintf(program, sleep)
		}
		args := append([]string{"run", "--static", "--backend", "landlock", "--test-off", "scopes"}, c.options...)
		cmd := exec.Command(filepath.Join(dir, "sbx"), append(args, "--", "sh", "-c",
			"(setsid sleep "+sleep+" &); until pgrep -f '[s]leep "+sleep+"' >/dev/null; do :; done; "+program)...)
		var errs bytes.Buffer
		cmd.Env, cmd.Dir, cmd.SysProcAttr, cmd.Stderr = shop.env(home, home), project, shop.attr(), &errs
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != c.status {
			t.Errorf("a program that %s: status %d, want %d\n%s", c.what, got, c.status, errs.Bytes())
		}
		if !strings.Contains(errs.String(), "sbx: signals: Landlock of this kernel knows none") {
			t.Errorf("the loss is not named:\n%s", errs.Bytes())
		}
		if err := waitGone("sleep "+sleep, time.Minute); err != nil {
			t.Errorf("a program that %s: %v", c.what, err)
		}
	}
	if err := bystander.Process.Kill(); err != nil { // it is there: nothing else of the user's was ended
		t.Errorf("a process of the user's beside the sandboxes: %v", err)
	}
	if err := bystander.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("a process of the user's beside the sandboxes: %v", err)
	}
	// The control: with scopes process 1 is out of the program's reach.
	cmd := exec.Command(filepath.Join(dir, "sbx"), "run", "-q", "--backend", "landlock", "--", "sh", "-c",
		"kill -KILL $PPID || exit 5")
	cmd.Env, cmd.Dir, cmd.SysProcAttr = shop.env(home, home), project, shop.attr()
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("with scopes: status %d, want 5: the program has ended process 1", got)
	}
}

// startAsUser starts a program of the ordinary user.
func startAsUser(t *testing.T, home, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = shop.env(home, home), dir, shop.attr()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}
