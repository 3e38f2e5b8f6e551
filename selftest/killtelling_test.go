//go:build linux

package selftest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// TestKilledWhileTelling: an answer is taken back, and sbx has the kernel forget a name, which waits for a directory
// that a question holds up. Whoever took it back is not held up. Sbx is killed then, and whoever waits for the answer
// is ended all the same: no signal would end him.
func TestKilledWhileTelling(t *testing.T) {
	needSandbox(t)
	need.Root(t, "to see where a thread waits")
	home, project := sandboxHome(t)
	made := filepath.Join(home, fmt.Sprintf("notes/made-%d", os.Getpid()))
	if err := os.MkdirAll(home+"/notes/kept", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := shop.own(home); err != nil {
		t.Fatal(err)
	}
	as := func(args ...string) *exec.Cmd {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Dir, cmd.SysProcAttr = shop.env(home, home), project, shop.attr()
		return cmd
	}
	output := func(args ...string) string {
		out, err := as(args...).Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return string(out)
	}
	run := as(shop.sbx, "run", "-q", "--gate", "gatefs", "--prompt", "socket", "--", "sh", "-c",
		"ls "+home+"/notes/kept; mkdir "+made)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill() })
	first := openQuestion(t, output)
	output(shop.sbx, "approve", first, "--scope", "tree", "--for", "session")
	for openQuestion(t, output) == first { // of the directory that is to be made
		time.Sleep(20 * time.Millisecond)
	}
	if len(findProcesses("mkdir "+made)) == 0 {
		t.Fatal("the program does not wait")
	}
	output(shop.sbx, "approve", "--revoke", home+"/notes/kept") // which does not wait for that
	for end := time.Now().Add(dialogPatience); !tells(run.Process.Pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the kernel has been told nothing, or does not wait")
		}
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := waitGone("mkdir "+made, time.Minute); err != nil {
		t.Error(err)
	}
	_ = run.Wait()
}

// tells says whether a thread of a process waits in a FUSE_NOTIFY_INVAL_ENTRY.
func tells(pid int) bool {
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stack", pid))
	for _, file := range list {
		if b, _ := os.ReadFile(file); strings.Contains(string(b), "fuse_reverse_inval_entry") {
			return true
		}
	}
	return false
}
