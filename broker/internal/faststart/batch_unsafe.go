//go:build linux

package faststart

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch has the threads that the runtime is about to make take the processor only where nobody uses it (SCHED_BATCH,
// sched(7)). One is its watchdog, which wakes every 20 microseconds at first: with the interrupts and the switches that
// belong to it, which cost most in a virtual machine, that took a tenth of the whole start. See unbatch for their end.
// Who runs under another policy than the usual one keeps it.
//
//go:nosplit
//go:norace
func (p *placement) batch() {
	policy, _, e := syscall.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	p.batched = e == 0 && policy == unix.SCHED_NORMAL && setPolicy(0, unix.SCHED_BATCH)
}

// hurry gives the calling thread, which is the one that sets up the sandbox, its own policy back.
func (p *placement) hurry() {
	if p.batched {
		setPolicy(0, unix.SCHED_NORMAL)
	}
}

// unbatch gives every thread of this process its own policy back. There must be no other threads that begin meanwhile
// but those of this process: they inherit what the thread has that clones them.
func (p *placement) unbatch() {
	if !p.batched {
		return
	}
	done := map[int]bool{}
	for more := true; more; {
		more = false
		list, _ := os.ReadDir("/proc/self/task")
		for _, e := range list {
			if tid, err := strconv.Atoi(e.Name()); err == nil && !done[tid] {
				done[tid], more = true, true
				setPolicy(tid, unix.SCHED_NORMAL)
			}
		}
	}
	p.batched = false
}

// setPolicy changes the scheduling policy of a thread; 0 is the calling one.
//
//go:nosplit
//go:norace
func setPolicy(tid int, policy uintptr) bool {
	var none int32 // struct sched_param: neither policy has a priority
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), policy, uintptr(unsafe.Pointer(&none)))
	return e == 0
}
