//go:build linux

package tape

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CloneArgs is struct clone_args (clone(2)).
type CloneArgs [11]uint64

// ForkInto is fork into a control group, by the descriptor of its directory. args is room for it: the stack is short.
//
//go:nosplit
//go:norace
func ForkInto(flags uintptr, args *CloneArgs, cgroup uint64) (pid, errno uintptr) {
	// Flags, exit_signal, cgroup.
	args[0], args[4], args[10] = uint64(flags)|unix.CLONE_INTO_CGROUP, uint64(unix.SIGCHLD), cgroup
	beforeFork()
	pid, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), unsafe.Sizeof(*args), 0)
	if e != 0 || pid != 0 {
		afterFork()
	} else {
		afterForkInChild()
	}
	return pid, uintptr(e)
}
