//go:build linux

package child

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// program is what process 1 needs to know besides its tapes. It lies in shared memory and is complete when the broker
// says that process 1 may begin.
type program struct {
	flags       uintptr
	sock, other uintptr // the two ends of the socket; the other one is the broker's
	unshare     int64   // errno
	begin       stage.Message
	setup       []tape.Op // empty where it was carried out before
	start       []tape.Op
	asPID1      bool
	remains     bool      // process 1 waits for everybody, and for nobody's word
	reaper      []tape.Op // what it does first then
	first       uintptr   // namespaces that the clone makes; 0: FirstFlags
	idle        bool
	joined      bool // process 1 is cloned in namespaces that were made before
	joins       [3]joins
	shared      int64 // the PID namespace is the host's: everybody or oneByOne; 0: it is not
	pid         int64 // of process 1, where it is joined
	cgroup      uint64
	args        tape.CloneArgs
}

// joins is a namespace that process 1 is cloned in: its descriptor and its kind (setns(2)); the zero value is none.
type joins struct{ fd, kind uintptr }

// cloning are the namespaces that the clone of process 1 makes.
//
//go:nosplit
//go:norace
func (p *program) cloning() uintptr {
	if p.first != 0 {
		return p.first
	}
	return p.flags & FirstFlags
}

// launch clones process 1 of the new PID namespace. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launch(b *Block) (pid, errno uintptr) {
	p := &b.prog
	// The other namespaces are the child's to make, while the broker does something useful.
	flags := p.cloning()
	if p.joined {
		flags = 0
	}
	if p.cgroup != 0 {
		pid, errno = tape.ForkInto(flags, &p.args, p.cgroup)
	} else {
		pid, errno = tape.Fork(flags)
	}
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	if p.joined {
		descend(p)
	}
	b.Unshare()
	b.Live()
	return 0, 0
}

// FirstFlags are the namespaces that the clone makes; process 1 makes the others itself.
const FirstFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID

// Enter is for who clones process 1 before there is a runtime: it is to be called before the clone, which is one with
// FirstFlags. The child calls unshare, carry if it has something to carry out, and live.
//
//go:nosplit
//go:norace
func (b *Block) Enter(flags, sock, other uintptr) {
	b.control.Setup.Index = -1
	b.prog.flags, b.prog.sock, b.prog.other = flags, sock, other
}

// Unshare makes the other namespaces.
//
//go:noinline
//go:nosplit
//go:norace
func (b *Block) Unshare() {
	p := &b.prog
	syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	syscall.RawSyscall(syscall.SYS_CLOSE, p.other, 0, 0) // so that the broker's end is the end of the socket
	flags := p.flags &^ (FirstFlags | p.first)
	if flags == 0 { // of a container's engine: its filter refuses even this
		return
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_UNSHARE, flags, 0, 0); e != 0 {
		p.unshare = int64(e)
		tape.Exit(1)
	}
}

// Carry carries out a set-up that is known before the plan is.
//
//go:nosplit
//go:norace
func (b *Block) Carry(ops []tape.Op) {
	if !tape.Run(ops, &b.control.Regs, &b.control.Setup) {
		tape.Exit(1)
	}
	b.prog.sock = stage.FdSock // the tape has moved it
}

// Live is the whole life of process 1, from when it waits for the broker's word. It never returns.
//
//go:nosplit
//go:norace
func (b *Block) Live() {
	await(&b.prog)
	p, c := &b.prog, &b.control
	if !tape.Run(p.setup, &c.Regs, &c.Setup) {
		stage.Stopped(c)
	}
	if p.asPID1 {
		tape.Run(p.start, &c.Program.Regs, &c.Program.Stop)
		tape.Exit(127)
	}
	if p.idle {
		syscall.RawSyscall(unix.SYS_CLOSE_RANGE, stage.FdStdio, stage.FdStdio+2, 0)
	} else {
		stage.StartProgram(c, &p.start)
	}
	if p.remains {
		remain(p, c)
	}
	serve(b)
}

// remain is the life of process 1 where it ends with the last process: it tells of the program's end, if anybody is
// there to hear it.
//
//go:noinline
//go:nosplit
//go:norace
func remain(p *program, c *stage.Control) {
	if !tape.Run(p.reaper, &c.Regs, &c.Setup) {
		stage.Stopped(c)
	}
	status := uintptr(1)
	for {
		v, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&c.Status)), 0, 0, 0, 0)
		if e == unix.ECHILD {
			tape.Exit(status)
		}
		if e == 0 && int64(v) == c.Main {
			status = uintptr(c.Status>>8) & 0xff
			if n := uintptr(c.Status) & 0x7f; n != 0 {
				status = 128 + n
			}
			stage.Send(c, stage.EvExited, c.Main, int64(c.Status), 0)
		}
	}
}

// descend enters the namespaces that were made before and clones process 1 there, as a child of the caller's. It
// returns in process 1 only.
//
//go:noinline
//go:nosplit
//go:norace
func descend(p *program) {
	e := syscall.Errno(0)
	for i := range p.joins {
		if j := &p.joins[i]; e == 0 && j.kind != 0 {
			_, _, e = syscall.RawSyscall(unix.SYS_SETNS, j.fd, j.kind, 0)
		}
	}
	if e == 0 {
		var pid uintptr
		pid, _, e = syscall.RawSyscall6(syscall.SYS_CLONE, p.cloning()|uintptr(unix.CLONE_PARENT), 0, 0, 0, 0, 0)
		if e == 0 && pid == 0 {
			return
		}
		p.pid = int64(pid)
	}
	p.unshare = int64(e)
	tape.Exit(0)
}

// await waits for the broker's word.
//
//go:noinline
//go:nosplit
//go:norace
func await(p *program) {
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, p.sock, uintptr(unsafe.Pointer(&p.begin)),
			unsafe.Sizeof(p.begin), 0, 0, 0)
		if e == 0 && n == unsafe.Sizeof(p.begin) && p.begin.Kind == stage.CmdBegin {
			return
		}
		if e != unix.EINTR {
			tape.Exit(1)
		}
	}
}

// serve is the life of process 1: reap, report what the broker started, carry out its commands, and
// leave when the broker is gone, which ends the whole PID namespace.
//
//go:nosplit
//go:norace
func serve(b *Block) {
	c := &b.control
	for {
		timeout := uintptr(0)
		if c.Untold > 0 {
			if clock(c) >= c.Tell {
				tellStarted(c)
			} else {
				c.Timeout = unix.Timespec{Nsec: stage.TellAfter}
				timeout = uintptr(unsafe.Pointer(&c.Timeout))
			}
		}
		if stage.Wake(c, timeout) && stage.Reap(c) {
			finishAll(b)
			stage.LookAtPlaces(c)
			stage.End(c, c.Main, int64(c.Status))
		}
		if hungUp(b) {
			finishAll(b)
			stage.End(c, 0, 0)
		}
		if stage.TakeCommand(c) {
			obey(b)
		}
	}
}

//go:nosplit
//go:norace
func obey(b *Block) {
	c := &b.control
	switch c.In.Kind {
	case stage.CmdKill:
		if b.prog.shared == oneByOne && c.In.PID == -1 { // all are all of the user's there
			return
		}
		stage.Kill(c)
	case stage.CmdSpawn:
		startLater(c, &b.slots[c.In.Value&(maxSlots-1)])
	case stage.CmdForeground:
		stage.Foreground(c)
	}
}
