//go:build linux

package faststart

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// placement is where the broker's threads and process 1 run, and how, until the program has started.
type placement struct {
	apart, all cpuSet // where process 1 was put, and what it is to have
	batched    bool   // the broker's threads but the first run under SCHED_BATCH
}

// cpuSet is the kernel's mask of processors; hosts with more keep process 1 where it is.
type cpuSet [16]uint64

// processors finds those that this thread may use.
//
//go:nosplit
//go:norace
func processors(all *cpuSet) bool {
	n, _, e := syscall.RawSyscall(unix.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(*all), uintptr(unsafe.Pointer(all)))
	return e == 0 && n <= unsafe.Sizeof(*all)
}

// elsewhere finds the processors that this thread is not running on. All is what it may use; it is empty if there are
// no others.
//
//go:nosplit
//go:norace
func elsewhere(all, apart *cpuSet) {
	var cpu uint32
	ok := processors(all)
	if ok {
		_, _, e := syscall.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
		ok = e == 0
	}
	*apart = *all
	apart[cpu>>6&15] &^= 1 << (cpu & 63)
	if !ok || *apart == (cpuSet{}) {
		*all = cpuSet{}
	}
}

// setApart puts process 1, which has just been cloned, on another processor than this one. A scheduler that packs tasks
// (some virtual machines have one), or that waits for its next round of balancing, would let the two take turns for the
// whole start; process 1 itself would get to say so only when its parent waits for the first time.
//
//go:nosplit
//go:norace
func setApart(p *placement, pid uintptr) {
	if p.all == (cpuSet{}) {
		return
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETAFFINITY, pid, unsafe.Sizeof(p.apart),
		uintptr(unsafe.Pointer(&p.apart))); e != 0 {
		p.all = cpuSet{}
	}
}

// join gives process 1 all its processors again, and so the program, before it is told to go on.
func (p *placement) join(pid int) error {
	if p.all == (cpuSet{}) {
		return nil
	}
	return setCPUs(pid, &p.all)
}

func setCPUs(pid int, set *cpuSet) error {
	_, _, errno := syscall.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(pid), unsafe.Sizeof(*set),
		uintptr(unsafe.Pointer(set)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Together implements child.Early: it puts process 1 on the processor of the calling thread, which answers it: while it
// builds on a file system that is served one of the two waits for the other all the time, and waking an idle processor
// takes longer than an answer. The tape gives process 1 its processors back (Processors), the function that is returned
// the thread.
func (*entered) Together(pid int) func() {
	var all, apart, one cpuSet
	runtime.LockOSThread()
	elsewhere(&all, &apart)
	for i := range one {
		one[i] = all[i] &^ apart[i]
	}
	if one == (cpuSet{}) || setCPUs(0, &one) != nil {
		return runtime.UnlockOSThread
	}
	_ = setCPUs(pid, &one)
	return func() {
		_ = setCPUs(0, &all)
		runtime.UnlockOSThread()
	}
}

// Processors implements child.Early.
func (*entered) Processors(p *plan.Plan) *[16]uint64 { return (*[16]uint64)(allowed(p)) }

// allowed is the set of processors that a process 1 with a served root is given before it is confined, see together.
func allowed(p *plan.Plan) *cpuSet {
	var all cpuSet
	if p.Gate == nil || !processors(&all) {
		return nil
	}
	return &all
}
