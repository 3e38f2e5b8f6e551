//go:build linux

package agent

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/tape"
)

// anyMountPoint is one that every sandbox has. The kernel knows the way to it without asking who serves the root.
const anyMountPoint = "/dev"

// Outlive has the agent wait for the end of this process, and then end the file systems that it has served at roots
// inside. They would not end by themselves where a thread of this process has just made the kernel forget a name
// (FUSE_NOTIFY_INVAL_ENTRY): it waits, and no signal ends that, for whoever holds the directory; he waits for an answer
// that nobody gives any more, and can be killed as little. The agent takes no other order after that.
func (a *Agent) Outlive(roots []string) error {
	// All signals are blocked in it: this one waits there.
	if _, err := a.order(func(t *tape.Tape, _ *agentBlock) {
		t.At("outliving the broker", "")
		t.Call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM))
	}); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proc == nil {
		return ErrNoAgent
	}
	if _, err := a.compile(func(t *tape.Tape, _ *agentBlock) {
		t.Call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
		t.Call(unix.SYS_RT_SIGTIMEDWAIT, tape.Ptr(t, &[1]uint64{1 << (unix.SIGTERM - 1)}), 0, 0, 8)
		for _, root := range roots {
			if root == "/" { // pivot_root(2) has locked it
				root = anyMountPoint
				t.Call(unix.SYS_MOUNT, t.Str("/"), t.Str(root), 0, unix.MS_BIND|unix.MS_REC, 0)
			}
			// It is aborted before anything else is looked at, whether it can be unmounted or not.
			t.Call(unix.SYS_UMOUNT2, t.Str(root), unix.MNT_FORCE).May(uint16(unix.EBUSY))
		}
	}); err != nil {
		return err
	}
	return a.begin()
}
