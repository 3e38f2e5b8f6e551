//go:build linux

package bwrap

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
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
	// It is asked of process 1 before that may make another namespace, when who writes the map has done so.
	for _, c := range []struct {
		kind  plan.Kind
		uid   uint32
		block bool
		fails bool
	}{{plan.Fuse, 7, true, false}, {plan.Fuse, 6, true, true}, {plan.AskServer, 6, true, true},
		{plan.Bind, 6, true, false}, {plan.Fuse, 6, false, true}, {plan.Fuse, 7, false, false}} {
		r := &request{user: true, userns: -1, usernsBlock: -1, info: -1, status: -1}
		null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.userns = null; c.block {
			r.userns, r.usernsBlock = -1, null
		} else {
			defer unix.Close(null)
		}
		p := &plan.Plan{Identity: plan.Identity{InsideUID: c.uid}, Bubblewrap: &plan.Bubblewrap{},
			Mounts: []plan.Mount{{Kind: c.kind}}}
		err = (&monitor{r: r, plan: p}).cloned(cmd.Process.Pid)
		if c.fails != (err != nil && strings.Contains(err.Error(), "is not the caller")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
