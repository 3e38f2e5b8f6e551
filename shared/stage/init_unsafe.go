package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func rawVfork(flags uintptr) (pid, errno uintptr)

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
	beforeFork()
	// The other namespaces are the child's to make, while the broker does something useful.
	flags := p.flags & (unix.CLONE_NEWUSER | unix.CLONE_NEWPID)
	if p.joined {
		flags = 0
	}
	var e syscall.Errno
	if p.cgroup != 0 {
		p.args.flags, p.args.exitSignal, p.args.cgroup = uint64(flags)|unix.CLONE_INTO_CGROUP, uint64(unix.SIGCHLD), p.cgroup
		pid, _, e = syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&p.args)), unsafe.Sizeof(p.args), 0)
	} else {
		pid, _, e = syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
	if e != 0 || pid != 0 {
		afterFork()
		return pid, uintptr(e)
	}
	afterForkInChild()
	if p.joined {
		descend(p)
	}
	live(p)
	return 0, 0
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
		runTape(p.start, &p.c.pregs, &p.c.start)
		exit(127)
	}
	if p.idle {
		syscall.RawSyscall(unix.SYS_CLOSE_RANGE, fdStdio, fdStdio+2, 0)
	} else {
		spawn(p)
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
	beforeFork()
	pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 || pid != 0 {
		afterFork()
		return pid, uintptr(e)
	}
	afterForkInChild()
	runTape(ops, &c.regs, &c.setup)
	exit(0)
	return 0, 0
}

// stopped ends a set-up that failed. It is a function of its own because the stack is short.
//
//go:noinline
//go:nosplit
//go:norace
func stopped(c *control) {
	if c.announce != 0 {
		send(c, evFault, c.setup.index, c.setup.errno, 0)
	}
	exit(1)
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
			return
		}
		if e != unix.EINTR {
			exit(1)
		}
	}
}

//go:nosplit
//go:norace
func exit(code uintptr) {
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, code, 0, 0)
	}
}

// spawn starts the program as a child of process 1. The child borrows this process's memory until its
// exec, so that starting it copies no page table.
//
//go:noinline
//go:nosplit
//go:norace
func spawn(p *program) {
	pid, errno := rawVfork(uintptr(unix.CLONE_VM | unix.CLONE_VFORK | unix.SIGCHLD))
	if errno == 0 && pid == 0 {
		runTape(p.start, &p.c.pregs, &p.c.start)
		exit(127)
	}
	c := p.c
	if errno != 0 {
		c.start.errno = int64(errno)
		send(c, evFailed, c.start.index, c.start.errno, 0)
		exit(1)
	}
	c.main = int64(pid)
	c.procs[0] = proc{pid: int32(pid), told: 1}
	c.nprocs = 1
	// The program's standard descriptors are its own now: a pipe must see its end when it closes them.
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, fdStdio, fdStdio+2, 0)
	if c.start.errno != 0 {
		send(c, evFailed, c.start.index, c.start.errno, 0)
		exit(1)
	}
	if c.announce != 0 {
		send(c, evMain, c.main, 0, 0)
	}
}

//go:nosplit
//go:norace
func send(c *control, kind, pid, value, extra int64) {
	c.out = message{kind: kind, pid: pid, value: value, extra: extra}
	syscall.RawSyscall6(syscall.SYS_SENDTO, fdSock, uintptr(unsafe.Pointer(&c.out)), unsafe.Sizeof(c.out), unix.MSG_NOSIGNAL, 0, 0)
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

// wake waits for something to happen, and says whether it is about a child. What serve calls is as shallow as can be: the stack is short.
//
//go:noinline
//go:nosplit
//go:norace
func wake(c *control, timeout uintptr) bool {
	c.poll[0].Revents, c.poll[1].Revents = 0, 0
	syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&c.poll[0])), 2, timeout, 0, 0, 0)
	if c.poll[1].Revents == 0 {
		return false
	}
	syscall.RawSyscall(syscall.SYS_READ, fdSignal, uintptr(unsafe.Pointer(&c.siginfo[0])), uintptr(len(c.siginfo)))
	return true
}

// take says whether there is a command, and leaves it in c.in. It ends process 1 where nobody can send one any more.
//
//go:noinline
//go:nosplit
//go:norace
func take(c *control) bool {
	if c.poll[0].Revents == 0 {
		return false
	}
	c.hdr.Controllen = uint64(len(c.cmsg))
	n, _, _ := syscall.RawSyscall(syscall.SYS_RECVMSG, fdSock, uintptr(unsafe.Pointer(&c.hdr)), unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if n == unsafe.Sizeof(c.in) {
		return true
	} else if c.poll[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 || n == 0 {
		exit(1)
	}
	return false
}

// reap reports what has ended, and returns true at the end of the program.
//
//go:noinline
//go:nosplit
//go:norace
func reap(c *control) bool {
	c.last.killed = 0
	for {
		v, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&c.status)), unix.WNOHANG|unix.WUNTRACED, uintptr(unsafe.Pointer(&c.usage)), 0, 0)
		pid := int64(v)
		if e != 0 || pid <= 0 {
			return false
		}
		weigh(c, pid)
		at := int64(-1)
		for i := int64(0); i < c.nprocs; i++ {
			if int64(c.procs[i&(maxProcs-1)].pid) == pid {
				at = i
				break
			}
		}
		if at < 0 {
			c.last.killed++ // became process 1's together with the end of the program, if this is that
			continue
		}
		is := c.procs[at&(maxProcs-1)]
		if c.status&0xff == 0x7f {
			send(c, evStopped, pid, int64(c.status), is.id)
			continue
		}
		if is.told == 0 {
			c.untold--
		}
		c.nprocs--
		c.procs[at&(maxProcs-1)] = c.procs[c.nprocs&(maxProcs-1)]
		if pid == c.main && c.exitWithMain != 0 {
			return true
		}
		if c.status != 0 {
			lookAtPlaces(c)
		}
		send(c, evExited, pid, int64(c.status), is.id)
	}
}

// end kills and reaps every other process before it reports the end of the program: whoever hears of
// it can rely on nothing being written any more. One that waits for a file system that does not answer cannot die before that does: it is
// left behind, with its death pending. Where some may belong to subordinate ids it cannot do so, and the caller
// ends the whole PID namespace when it hears.
//
//go:noinline
//go:nosplit
//go:norace
func end(c *control, pid, status int64) {
	syscall.RawSyscall(syscall.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0)
	for c.manyIDs == 0 {
		v, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&c.status)), unix.WNOHANG, uintptr(unsafe.Pointer(&c.usage)), 0, 0)
		if e == 0 && v != 0 {
			c.last.killed++
			weigh(c, int64(v))
			continue
		}
		if e == 0 {
			c.timeout = unix.Timespec{Sec: dieWithin}
			n, _, pe := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&c.poll[1])), 1, uintptr(unsafe.Pointer(&c.timeout)), 0, 0, 0)
			if pe == 0 && n != 0 {
				syscall.RawSyscall(syscall.SYS_READ, fdSignal, uintptr(unsafe.Pointer(&c.siginfo[0])), uintptr(len(c.siginfo)))
				continue
			}
			if pe == 0 {
				c.last.left = 1
			}
			e = pe
		}
		if e != unix.EINTR {
			break
		}
	}
	if c.announce != 0 {
		send(c, evAfter, c.last.peakPID, c.last.peak, pack(c))
	}
	send(c, evExited, pid, status, 0)
	// Taking the namespaces apart is much work for the kernel, and the broker has something to do now.
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, fdSock, uintptr(unsafe.Pointer(&c.in)), unsafe.Sizeof(c.in), 0, 0, 0)
		if e == 0 && n == 0 || e != 0 && e != unix.EINTR {
			exit(0)
		}
	}
}

// weigh notes the largest process.
//
//go:nosplit
//go:norace
func weigh(c *control, pid int64) {
	if int64(c.usage.Maxrss) > c.last.peak {
		c.last.peak, c.last.peakPID = int64(c.usage.Maxrss), pid
	}
}

// pack puts what is not about the largest process in one word: who shares no memory with process 1 reads it with unpack.
//
//go:noinline
//go:nosplit
//go:norace
func pack(c *control) int64 {
	v := c.last.killed<<1 | c.last.left
	for i := 0; i < maxPlaces; i++ {
		v = v<<2 | c.last.full[i]<<1 | c.last.nodes[i]
	}
	return v
}

// lookAtPlaces notes which temporary file systems are full. On arm64 the stack has no room for RawSyscall in between here.
//
//go:noinline
//go:nosplit
//go:norace
func lookAtPlaces(c *control) {
	for i := 0; i < maxPlaces && c.last.places[i] != 0; i++ {
		st := &c.last.st
		if _, _, e := syscall.RawSyscall6(syscall.SYS_STATFS, c.last.places[i], uintptr(unsafe.Pointer(st)), 0, 0, 0, 0); e != 0 {
			continue
		}
		c.last.full[i], c.last.nodes[i] = 0, 0
		if st.Bavail*64 < st.Blocks {
			c.last.full[i] = 1
		}
		if st.Files > 0 && st.Ffree*64 < st.Files {
			c.last.nodes[i] = 1
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
	}
}

// kill is a function of its own to keep the frame of obey small: what it calls needs the stack.
//
//go:noinline
//go:nosplit
//go:norace
func kill(c *control) {
	_, _, e := syscall.RawSyscall(syscall.SYS_KILL, uintptr(c.in.pid), uintptr(c.in.value), 0)
	if c.in.extra != 0 {
		send(c, evKilled, c.in.extra, int64(e), 0)
	}
}
