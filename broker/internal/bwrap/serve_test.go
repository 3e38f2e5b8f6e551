//go:build linux

package bwrap

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// TestServedAs: whoever writes the map of the user namespace says who is the caller there. Somebody else in it is not
// taken for him.
func TestServedAs(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	maps := []syscall.SysProcIDMap{{ContainerID: 7, HostID: os.Geteuid(), Size: 1}}
	if os.Geteuid() == 0 { // and others, which take a privilege
		maps = append(maps, syscall.SysProcIDMap{ContainerID: 0, HostID: 100000, Size: 5})
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: maps}
	err := cmd.Start()
	need.Fact(t, err == nil, "user namespaces: %v", err)
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if err := servedAs(cmd.Process.Pid, 7); err != nil {
		t.Errorf("the caller: %v", err)
	}
	for _, uid := range []uint32{0, 1, 6, 8, 1 << 31, ^uint32(0)} {
		if err := servedAs(cmd.Process.Pid, uid); err == nil || !strings.Contains(err.Error(), "is not the caller") {
			t.Errorf("%d: %v", uid, err)
		}
	}
	if err := servedAs(1<<30, 7); err == nil {
		t.Error("no such process")
	}
}
