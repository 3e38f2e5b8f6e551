//go:build linux

package selftest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLandlockWithoutScopes: where Landlock knows no signals (before ABI 6) nothing outlives a session either, also if
// the program ends or stops process 1, which it can there. What is left is killed one by one, and never by a signal to
// all processes, which would be all of the user's.
func TestLandlockWithoutScopes(t *testing.T) {
	needSandbox(t)
	dir := layersDir(t)
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
