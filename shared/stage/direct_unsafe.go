//go:build linux

package stage

import "sbx.example/sbx/shared/tape"

// Where process 1 maps what sbx leaves it to do (see tail).
const (
	TailAt   = 0x2_0000_0000 // neither Go's nor the kernel's choice, and within the smallest address space (39 bits)
	TailSize = 32 << 20
	OfTail   = 1 << 32 // what is added to the number of an instruction of rest
)

// launchDirect is launch for a set-up without a user namespace: all namespaces are made by the clone, what takes
// privileges is on the
// tape before it, and nothing is started later. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launchDirect(flags uintptr, setup []tape.Op, c *Control) (pid, errno uintptr) {
	if pid, errno = tape.Fork(flags); errno != 0 || pid != 0 {
		return pid, errno
	}
	if !tape.Run(setup, &c.Regs, &c.Setup) {
		Stopped(c)
	}
	AfterLeave((*Tail)(tape.Address(TailAt)), c)
	return 0, 0
}
