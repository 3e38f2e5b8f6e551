//go:build linux

package selftest

import (
	"encoding/json"
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

// A broker that is killed while programs are started, stopped and let go in its session: everything ends, who waits is
// told, and after the next look at the list nothing is left of the session but its record, on no mount table, in no
// control group.
func TestKilledBrokerDuringCommands(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	home, project := sandboxHome(t)
	sbx := func(args ...string) *exec.Cmd {
		cmd := exec.Command(shop.sbx, args...)
		cmd.Env, cmd.Dir, cmd.SysProcAttr = shop.env(home, home), project, shop.attr()
		return cmd
	}
	sleep := fmt.Sprintf("95.%d", os.Getpid())
	for i := range 9 {
		sid := fmt.Sprintf("killed-%d", i)
		out, err := sbx("run", "-q", "--detach", "--json", "--name", sid).Output()
		var made struct{ PID int }
		if err == nil {
			err = json.Unmarshal(out, &made)
		}
		if err != nil || made.PID < 2 {
			t.Fatalf("%v\n%s", err, out)
		}
		var clients []*exec.Cmd
		start := func(args ...string) {
			cmd := sbx(args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, cmd)
		}
		for range 1 + i%3 {
			start("exec", sid, "--", "sh", "-c", "setsid sleep "+sleep+" & while :; do true; sleep 0.01; done")
		}
		if i%2 == 0 {
			start("freeze", sid)
			start("thaw", sid)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		if err := syscall.Kill(made.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for _, c := range clients {
			ended := make(chan error, 1)
			go func() { ended <- c.Wait() }()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				_ = c.Process.Kill()
				t.Errorf("round %d: %q waits for a session that is dead", i, c.Args[1:])
			}
		}
		if err := waitGone(sleep, time.Minute); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	if out, err := sbx("ls").CombinedOutput(); err != nil || strings.Contains(string(out), "killed-") {
		t.Errorf("%v\n%s", err, out)
	}
	state := filepath.Join(home, ".local/state/sbx")
	for _, pattern := range []string{state + "/run/*", state + "/sessions/*/lock", state + "/sessions/*/overlay",
		"/sys/fs/cgroup/sbx-killed-*", "/sys/fs/cgroup/*/sbx-killed-*"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
	if now := mountTable(t); strings.Contains(now, filepath.Dir(home)) {
		t.Errorf("something of it is mounted on the host:\n%s", now)
	}
}
