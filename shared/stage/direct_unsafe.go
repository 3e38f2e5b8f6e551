package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tail is the beginning of the file of which process 1 carries out the rest, at the address tailAt, once it has no privilege: what
// is in there it does with its caller's rights, and a caller could as well have a program of theirs do it.
type tail struct {
	rest, start [3]uintptr // lists of instructions: address, length, capacity
	places      [maxPlaces]uintptr
}

const (
	tailAt   = 0x2_0000_0000 // neither Go's nor the kernel's choice, and within the smallest address space (39 bits)
	tailSize = 32 << 20
	ofTail   = 1 << 32 // what is added to the number of an instruction of rest
)

// launchDirect is launch for a set-up without a user namespace: all namespaces are made by the clone, what takes privileges is on the
// tape before it, and nothing is started later. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launchDirect(p *program) (pid, errno uintptr) {
	beforeFork()
	pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, p.flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 || pid != 0 {
		afterFork()
		return pid, uintptr(e)
	}
	afterForkInChild()
	if !runTape(p.setup, &p.c.regs, &p.c.setup) {
		stopped(p.c)
	}
	t := (*tail)(address(tailAt))
	p.c.last.places = t.places
	*(*[3]uintptr)(unsafe.Pointer(&p.start)) = t.start
	if !runTape(*(*[]op)(unsafe.Pointer(&t.rest)), &p.c.regs, &p.c.setup) {
		p.c.setup.index += ofTail
		stopped(p.c)
	}
	spawn(p)
	for {
		if wake(p.c, 0) && reap(p.c) {
			lookAtPlaces(p.c)
			end(p.c, p.c.main, int64(p.c.status))
		}
		if take(p.c) && p.c.in.kind == cmdKill {
			kill(p.c)
		}
	}
}
