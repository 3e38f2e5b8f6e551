//go:build linux

package selftest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const killRounds = 20

// sandboxHome makes a home with a project and a few things that sandboxes touch.
func sandboxHome(t *testing.T) (home, project string) {
	t.Helper()
	dir, err := os.MkdirTemp(shop.dir, "kill-")
	if err != nil {
		t.Fatal(err)
	}
	home, project = filepath.Join(dir, "home"), filepath.Join(dir, "home", "project")
	for _, d := range []string{project + "/.git/hooks", home + "/.ssh", home + "/.cache/tool", home + "/.local/state"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{project + "/.env", project + "/main.c", home + "/.ssh/id", home + "/.cache/tool/x"} {
		if err := os.WriteFile(f, []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(dir); err != nil {
		t.Fatal(err)
	}
	return home, project
}

// Whatever sbx is doing when it is killed, nothing of the sandbox lives on and nothing is left on the
// host but the session's record.
func TestKilledBrokerLeavesNothing(t *testing.T) {
	needSandbox(t)
	home, project := sandboxHome(t)
	sleep := fmt.Sprintf("90.%d", os.Getpid()) // in every command line of this test
	start := func() *exec.Cmd {
		cmd := exec.Command(shop.sbx, "run", "-q", "--overlay", home+"/.cache", "--", "sh", "-c", "setsid sleep "+sleep+
			" & sleep "+sleep)
		cmd.Env, cmd.Dir, cmd.SysProcAttr = shop.env(home, home), project, shop.attr()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	end := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	first := exec.Command(shop.sbx, "run", "-q", "--", "true") // makes the folder of the records
	first.Env, first.Dir, first.SysProcAttr = shop.env(home, home), project, shop.attr()
	if out, err := first.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before, err := snapshot(home)
	if err != nil {
		t.Fatal(err)
	}
	mounts := mountTable(t)
	for i := range killRounds {
		cmd := start()
		// The set-up takes some five milliseconds: most rounds end within it.
		wait := time.Duration(rand.Int64N(int64(12 * time.Millisecond)))
		if i%5 == 4 {
			wait = 150 * time.Millisecond
		}
		time.Sleep(wait)
		end(cmd)
		if err := waitGone(sleep, time.Minute); err != nil {
			t.Fatalf("round %d, killed after %v: %v", i, wait, err)
		}
	}
	after, err := snapshot(home)
	if err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Errorf("the home changed:\n--- before\n%s--- after\n%s", before, after)
	}
	if now := mountTable(t); now != mounts {
		t.Errorf("the mount table changed:\n%s\nwas\n%s", now, mounts)
	}
	checkRecords(t, home)
}

// checkRecords wants nothing but records in the folder of sessions, and the next sandboxes to clear
// away the layers that the killed ones could not.
func checkRecords(t *testing.T, home string) {
	t.Helper()
	sessions := filepath.Join(home, ".local/state/sbx/sessions")
	list, err := os.ReadDir(sessions)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) > killRounds+1 {
		t.Errorf("%d sessions after %d rounds", len(list), killRounds+1)
	}
	for _, e := range list {
		files, _ := os.ReadDir(filepath.Join(sessions, e.Name()))
		for _, f := range files {
			switch f.Name() {
			case "plan.json", "log.jsonl", "audit", "status", "lock", "overlay", "etc":
			default:
				t.Errorf("session %s holds %s", e.Name(), f.Name())
			}
		}
	}
}

// A wait for the end of a program that could not see it would end at once.
func TestGoneSeesWhatRuns(t *testing.T) {
	seconds := fmt.Sprintf("97.%d", os.Getpid())
	cmd := exec.Command("sleep", seconds)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if waitGone("sleep "+seconds, 0) == nil || len(running("sleep "+seconds)) != 1 {
		t.Error("a program that runs is not seen")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := waitGone("sleep "+seconds, 0); err != nil {
		t.Error(err)
	}
}

// mountTable is what is mounted on this host, FUSE connections included.
func mountTable(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A sandbox whose broker is stopped lives, one whose parent shell dies as well; the terminal's hangup
// and the end of the session end it (see also signals.txtar).
func TestKilledProcessOneEndsBroker(t *testing.T) {
	needSandbox(t)
	home, project := sandboxHome(t)
	sleep := fmt.Sprintf("91.%d", os.Getpid())
	cmd := exec.Command(shop.sbx, "run", "-q", "--", "sleep", sleep)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = shop.env(home, home), project, shop.attr()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	one := 0
	for end := time.Now().Add(time.Minute); one == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		// The broker and process 1 have the same command line until the program itself runs.
		if list := childrenOf(cmd.Process.Pid); len(list) > 0 && len(running("sleep "+sleep)) > 0 {
			one = list[0]
		}
	}
	if one == 0 {
		t.Fatal("the program was not seen within a minute")
	}
	if err := waitAsleep(one, time.Minute); err != nil { // it has nothing left to do but wait
		t.Fatal(err)
	}
	if err := syscall.Kill(one, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 137 {
		t.Errorf("exit status %d (%v), want 137", code, err)
	}
	if err := waitGone(sleep, time.Minute); err != nil {
		t.Error(err)
	}
}

// waitAsleep waits until a process waits for something.
func waitAsleep(pid int, most time.Duration) error {
	var f []string
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if f = stat(fmt.Sprintf("/proc/%d", pid)); len(f) == 0 {
			return fmt.Errorf("process %d has ended", pid)
		} else if f[0] == "S" {
			return nil
		}
	}
	return fmt.Errorf("process %d is in state %s after %v", pid, f[0], most)
}

// childrenOf reads the children of every thread of a process.
func childrenOf(pid int) []int {
	var out []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, w := range strings.Fields(string(b)) {
			var n int
			if _, err := fmt.Sscan(w, &n); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
