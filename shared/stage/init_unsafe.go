package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// program is what the child needs to know. It lies in shared memory and is complete when the broker says
// that the child may begin.
type program struct {
	flags       uintptr
	sock, other uintptr // the two ends of the socket; the other one is the broker's
	unshare     int64   // errno
	begin       message
	c           *control
	setup       []op
	start       []op
	asPID1      bool
	idle        bool
	joined      bool // the sandbox lies below a network that was made before
	user, net   uintptr
	pid         int64 // of process 1, where it is joined
	cgroup      uint64
	args        cloneArgs
	ahead       *aheadFile // carried out before the plan is known
	apart, all  cpuSet     // where it was put until the program starts, and what that is to have
	here        cpuSet     // the others
	stays       bool       // the broker's threads are kept there
	batched     bool       // they run under SCHED_BATCH, but for the first
}

// cloneArgs is struct clone_args (clone(2)).
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// launch clones process 1 of the new PID namespace. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launch(p *program) (pid, errno uintptr) {
	// The other namespaces are the child's to make, while the broker does something useful.
	flags := p.flags & (unix.CLONE_NEWUSER | unix.CLONE_NEWPID)
	if p.joined {
		flags = 0
	}
	if p.cgroup != 0 {
		pid, errno = forkInto(p, flags)
	} else {
		pid, errno = fork(flags)
	}
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	if p.joined {
		descend(p)
	}
	live(p)
	return 0, 0
}

// forkInto is fork into the control group of p.
//
//go:nosplit
//go:norace
func forkInto(p *program, flags uintptr) (pid, errno uintptr) {
	p.args.flags, p.args.exitSignal, p.args.cgroup = uint64(flags)|unix.CLONE_INTO_CGROUP, uint64(unix.SIGCHLD), p.cgroup
	beforeFork()
	pid, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&p.args)), unsafe.Sizeof(p.args), 0)
	forked(pid, uintptr(e))
	return pid, uintptr(e)
}

// live is the whole life of process 1. It never returns.
//
//go:nosplit
//go:norace
func live(p *program) {
	await(p)
	if p.ahead == nil && !runTape(p.setup, &p.c.regs, &p.c.setup) {
		stopped(p.c)
	}
	if p.asPID1 {
		runTape(p.start, &p.c.program.regs, &p.c.program.fault)
		exit(127)
	}
	if p.idle {
		syscall.RawSyscall(unix.SYS_CLOSE_RANGE, fdStdio, fdStdio+2, 0)
	} else {
		spawn(p.c, &p.start)
	}
	serve(p.c)
}

// descend enters the network and clones process 1 there, as a child of the caller's. It returns in process 1 only.
//
//go:noinline
//go:nosplit
//go:norace
func descend(p *program) {
	_, _, e := syscall.RawSyscall(unix.SYS_SETNS, p.user, unix.CLONE_NEWUSER, 0)
	if e == 0 {
		_, _, e = syscall.RawSyscall(unix.SYS_SETNS, p.net, unix.CLONE_NEWNET, 0)
	}
	if e == 0 {
		var pid uintptr
		pid, _, e = syscall.RawSyscall6(syscall.SYS_CLONE, p.flags&(unix.CLONE_NEWUSER|unix.CLONE_NEWPID)|uintptr(unix.CLONE_PARENT), 0, 0, 0, 0, 0)
		if e == 0 && pid == 0 {
			return
		}
		p.pid = int64(pid)
	}
	p.unshare = int64(e)
	exit(0)
}

// launchTape clones a child that carries out one tape and ends. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launchTape(flags uintptr, ops []op, c *control) (pid, errno uintptr) {
	if pid, errno = fork(flags); errno != 0 || pid != 0 {
		return pid, errno
	}
	runTape(ops, &c.regs, &c.setup)
	exit(0)
	return 0, 0
}

// await makes the namespaces, carries out what is known already, and waits for the broker's word.
//
//go:noinline
//go:nosplit
//go:norace
func await(p *program) {
	syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	syscall.RawSyscall(syscall.SYS_CLOSE, p.other, 0, 0) // so that the broker's end is the end of the socket
	if _, _, e := syscall.RawSyscall(syscall.SYS_UNSHARE, p.flags&^(unix.CLONE_NEWUSER|unix.CLONE_NEWPID), 0, 0); e != 0 {
		p.unshare = int64(e)
		exit(1)
	}
	if p.ahead != nil {
		carryAhead(p)
	}
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, p.sock, uintptr(unsafe.Pointer(&p.begin)), unsafe.Sizeof(p.begin), 0, 0, 0)
		if e == 0 && n == unsafe.Sizeof(p.begin) && p.begin.kind == cmdBegin {
			if p.ahead == nil {
				rejoin(&p.all)
			}
			return
		}
		if e != unix.EINTR {
			exit(1)
		}
	}
}

// serve is the life of process 1: reap, report what the broker started, carry out its commands, and
// leave when the broker is gone, which ends the whole PID namespace.
//
//go:nosplit
//go:norace
func serve(c *control) {
	for {
		timeout := uintptr(0)
		if c.untold > 0 {
			if clock(c) >= c.tell {
				tellStarted(c)
			} else {
				c.timeout = unix.Timespec{Nsec: tellAfter}
				timeout = uintptr(unsafe.Pointer(&c.timeout))
			}
		}
		if wake(c, timeout) && reap(c) {
			lookAtPlaces(c)
			end(c, c.main, int64(c.status))
		}
		if take(c) {
			obey(c)
		}
	}
}

//go:nosplit
//go:norace
func obey(c *control) {
	switch c.in.kind {
	case cmdKill:
		kill(c)
	case cmdSpawn:
		startLater(c, &c.slots[c.in.value&(maxSlots-1)])
	case cmdForeground:
		foreground(c)
	}
}
