package stage

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// launchDirect is launch for a set-up without a user namespace: everything is on the tapes before the clone, all namespaces are
// made by it, and nothing is started later. In the child it never returns.
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
