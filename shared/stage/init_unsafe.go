package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// program is what process 1 needs to know besides its tapes. It lies in shared memory and is complete when the broker says
// that process 1 may begin.
type program struct {
	flags       uintptr
	sock, other uintptr // the two ends of the socket; the other one is the broker's
	unshare     int64   // errno
	begin       message
	setup       []op // empty where it was carried out before
	start       []op
	asPID1      bool
	idle        bool
	joined      bool // the sandbox lies below a network that was made before
	user, net   uintptr
	pid         int64 // of process 1, where it is joined
	cgroup      uint64
	args        cloneArgs
}

// launch clones process 1 of the new PID namespace. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launch(b *block) (pid, errno uintptr) {
	p := &b.prog
	// The other namespaces are the child's to make, while the broker does something useful.
	flags := p.flags & firstFlags
	if p.joined {
		flags = 0
	}
	if p.cgroup != 0 {
		pid, errno = forkInto(flags, &p.args, p.cgroup)
	} else {
		pid, errno = fork(flags)
	}
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	if p.joined {
		descend(p)
	}
	b.unshare()
	b.live()
	return 0, 0
}

// firstFlags are the namespaces that the clone makes; process 1 makes the others itself.
const firstFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID

// enter is for who clones process 1 before there is a runtime: it is to be called before the clone, which is one with firstFlags. The child
// calls unshare, carry if it has something to carry out, and live.
//
//go:nosplit
//go:norace
func (b *block) enter(flags, sock, other uintptr) {
	b.control.setup.index = -1
	b.prog.flags, b.prog.sock, b.prog.other = flags, sock, other
}

// unshare makes the other namespaces.
//
//go:noinline
//go:nosplit
//go:norace
func (b *block) unshare() {
	p := &b.prog
	syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	syscall.RawSyscall(syscall.SYS_CLOSE, p.other, 0, 0) // so that the broker's end is the end of the socket
	if _, _, e := syscall.RawSyscall(syscall.SYS_UNSHARE, p.flags&^firstFlags, 0, 0); e != 0 {
		p.unshare = int64(e)
		exit(1)
	}
}

// carry carries out a set-up that is known before the plan is.
//
//go:nosplit
//go:norace
func (b *block) carry(ops []op) {
	if !runTape(ops, &b.control.regs, &b.control.setup) {
		exit(1)
	}
	b.prog.sock = fdSock // the tape has moved it
}

// live is the whole life of process 1, from when it waits for the broker's word. It never returns.
//
//go:nosplit
//go:norace
func (b *block) live() {
	await(&b.prog)
	p, c := &b.prog, &b.control
	if !runTape(p.setup, &c.regs, &c.setup) {
		stopped(c)
	}
	if p.asPID1 {
		runTape(p.start, &c.program.regs, &c.program.fault)
		exit(127)
	}
	if p.idle {
		syscall.RawSyscall(unix.SYS_CLOSE_RANGE, fdStdio, fdStdio+2, 0)
	} else {
		spawn(c, &p.start)
	}
	serve(b)
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
		pid, _, e = syscall.RawSyscall6(syscall.SYS_CLONE, p.flags&firstFlags|uintptr(unix.CLONE_PARENT), 0, 0, 0, 0, 0)
		if e == 0 && pid == 0 {
			return
		}
		p.pid = int64(pid)
	}
	p.unshare = int64(e)
	exit(0)
}

// await waits for the broker's word.
//
//go:noinline
//go:nosplit
//go:norace
func await(p *program) {
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, p.sock, uintptr(unsafe.Pointer(&p.begin)), unsafe.Sizeof(p.begin), 0, 0, 0)
		if e == 0 && n == unsafe.Sizeof(p.begin) && p.begin.kind == cmdBegin {
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
func serve(b *block) {
	c := &b.control
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
			obey(b)
		}
	}
}

//go:nosplit
//go:norace
func obey(b *block) {
	c := &b.control
	switch c.in.kind {
	case cmdKill:
		kill(c)
	case cmdSpawn:
		startLater(c, &b.slots[c.in.value&(maxSlots-1)])
	case cmdForeground:
		foreground(c)
	}
}
