//go:build linux

package selftest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
	"sbx.example/sbx/shared/wire"
)

// chargedFlag makes the test's own binary a caller who may have one UTS namespace, where root may have none more:
// "-charged-helper first". While process 1 of its sandbox stands it asks for another ("second").
const chargedFlag = "-charged-helper"

// exhaustRoot has each user of this user namespace have one UTS namespace at most (user_namespaces(7), Linux 4.9), and
// root have it.
func exhaustRoot() error {
	if err := os.WriteFile("/proc/sys/user/max_uts_namespaces", []byte("1"), 0o644); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("making root's UTS namespace: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWUTS); err != unix.ENOSPC {
		return fmt.Errorf("root made one too many: %v", err)
	}
	return nil
}

func chargedCaller(which string) int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	said := json.NewEncoder(os.Stdout)
	if which == "second" {
		a := attempt{name: "a namespace too many for its caller", plan: basePlan(), reason: wire.NotStarted}
		_ = said.Encode(a.try())
		return 0
	}
	a := attempt{name: "a namespace where root may have none", plan: basePlan(), runs: true}
	_ = said.Encode(a.try())
	a.started = func(int) {
		second := exec.Command("/proc/self/exe", chargedFlag, "second")
		second.Stdout = os.Stdout
		if err := second.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	_ = said.Encode(a.try())
	return 0
}

// TestHelperChargesItsCaller: what the helper makes counts against its caller's limits on namespaces, and not against
// root's. Both have one UTS namespace at most, in a user namespace of the test's own, and root's is made.
func TestHelperChargesItsCaller(t *testing.T) {
	t.Parallel()
	needHelper(t)
	out, err := charged(t, "true").CombinedOutput()
	need.Fact(t, err == nil, "writing below /proc/sys/user in a user namespace (%s)", out)
	cmd := charged(t, "/proc/self/exe", chargedFlag, "first")
	cmd.Stderr = t.Output()
	out, err = cmd.Output()
	if err != nil {
		t.Error(err)
	}
	if made := len(resultsOf(t, out)); made != 3 {
		t.Errorf("%d attempts were made, want 3", made)
	}
}

// charged is a command of such a caller.
func charged(t *testing.T, args ...string) *exec.Cmd {
	args = shop.launch("4755+charged", args...)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	all := []syscall.SysProcIDMap{{Size: 1 << 16}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: all, GidMappings: all,
		GidMappingsEnableSetgroups: true}
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin"}, "/"
	return cmd
}
