//go:build linux

package tape

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// jobStack is the stack of a child on its way to its exec.
const jobStack = 16 << 10

// Job is a tape for a child that shares this memory until its exec, so that starting it copies no page table, and that
// runs on a stack of its own.
type Job struct {
	Ops   []Op
	Regs  Registers
	Stop  Stop
	stack [jobStack]byte
}

// Clone starts the child. The kernel clears *tid when the child has left the memory, if flags has CLONE_CHILD_CLEARTID.
//
//go:nosplit
//go:norace
func (j *Job) Clone(flags uintptr, tid *int32) (pid, errno uintptr) {
	return rawClone(unix.CLONE_VM|flags, uintptr(unsafe.Pointer(&j.stack))+jobStack, j, tid)
}

// rawClone is clone(2) of a child that runs execJob(j) on stack.
func rawClone(flags, stack uintptr, j *Job, tid *int32) (pid, errno uintptr)

// execJob is the whole life of the child until its exec.
//
//lint:ignore U1000 clone_*.s calls it
//go:nosplit
//go:norace
func execJob(j *Job) {
	Run(j.Ops, &j.Regs, &j.Stop)
	Exit(127)
}
