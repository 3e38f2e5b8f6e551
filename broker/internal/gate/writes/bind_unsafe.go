//go:build linux

package writes

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoRule says that this kernel has no Landlock (5.13) that could hold a thread to a tree.
var errNoRule = errors.New("no rule for making sockets is to be had")

// bindBeneath gives a socket a name that a path leads to. What the path leads to can be changed by another session in
// the same tree, so it is done by a thread that may make sockets below root alone (landlock(7)). Nothing else is asked
// of that thread: it may not look at the callers any more.
func bindBeneath(root, from, sock int, address string, mask int) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err := onlySocketsBelow(root); err != nil {
			done <- err
			return
		}
		unix.Umask(mask)
		done <- bindIn(from, sock, address)
	}()
	return <-done
}

// onlySocketsBelow takes the right to make sockets from this thread, but for below a directory, and gives it a working
// directory and a mask of its own.
func onlySocketsBelow(root int) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SOCK}
	set, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if e != 0 {
		return errNoRule
	}
	defer unix.Close(int(set))
	below := unix.LandlockPathBeneathAttr{Allowed_access: unix.LANDLOCK_ACCESS_FS_MAKE_SOCK, Parent_fd: int32(root)}
	_, _, e = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&below)), 0, 0, 0)
	if e != 0 {
		return errNoRule
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, e = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); e != 0 {
		return errNoRule
	}
	return nil
}
