//go:build linux

package resources

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// On a version 2 hierarchy in which this process may make groups: what is frozen does not run and can be killed.
func TestFreeze(t *testing.T) {
	g := (*Group)(nil)
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(dir + "/cgroup.procs"); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(dir, "sbx-freeze-test-")
		if err == nil {
			g = &Group{Dir: dir}
			break
		}
	}
	if g == nil {
		need.Fact(t, false, "a version 2 hierarchy in which this user may make control groups")
	}
	defer func() {
		if err := g.remove(10 * time.Second); err != nil {
			t.Error(err)
		}
	}()
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if err := g.Add(cmd.Process.Pid); err != nil {
		need.Fact(t, false, "%s", "the right to move a process into a control group: "+err.Error())
	}
	ticks := func() string {
		b, _ := os.ReadFile("/proc/" + strings.TrimSpace(g.text("cgroup.procs")) + "/schedstat")
		return string(b)
	}
	if err := g.Freeze(true); err != nil {
		t.Fatal(err)
	}
	frozen := false // the wait in Freeze is bounded
	for end := time.Now().Add(30 * time.Second); !frozen && time.Now().Before(end); time.Sleep(time.Millisecond) {
		frozen = keyed(g.text("cgroup.events"), "frozen") == 1
	}
	before := ticks()
	time.Sleep(200 * time.Millisecond)
	if after := ticks(); !frozen || before != after || before == "" {
		t.Errorf("frozen %t, it ran on: %q %q", frozen, before, after)
	}
	if err := g.Freeze(false); err != nil {
		t.Fatal(err)
	}
	goes := false
	for end := time.Now().Add(30 * time.Second); !goes && time.Now().Before(end); time.Sleep(time.Millisecond) {
		goes = ticks() != before
	}
	if !goes {
		t.Error("it does not go on after the thaw")
	}
	if err := g.Freeze(true); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if ws := cmd.ProcessState.Sys().(interface{ Signaled() bool }); !ws.Signaled() {
		t.Errorf("what was frozen was not killed: %v", err)
	}
	_ = unix.Rmdir(g.Dir)
}
