//go:build linux

package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/tape"
)

// What process 1 does when it has given up everything, whoever cloned it: it starts the program, reaps, and reports. In
// sbx-helper's program all of this runs after leave only (selftest/linked looks whether that is so).

// Tail is the beginning of the file of which process 1 carries out the rest, at the address TailAt, once it has no
// privilege: what is in there it does with its caller's rights, and a caller could as well have a program of theirs do
// it.
type Tail struct {
	Rest, Start []tape.Op
	Places      [MaxPlaces]uintptr
}

// AfterLeave never returns. Nothing is left of the privileges, and x is the caller's, whatever is in there.
//
//go:noinline
//go:nosplit
//go:norace
func AfterLeave(x *Tail, c *Control) {
	c.Last.Places = x.Places
	if !tape.Run(x.Rest, &c.Regs, &c.Setup) {
		c.Setup.Index += OfTail
		Stopped(c)
	}
	StartProgram(c, &x.Start)
	for {
		if Wake(c, 0) && Reap(c) {
			LookAtPlaces(c)
			End(c, c.Main, int64(c.Status))
		}
		if !TakeCommand(c) {
			continue
		}
		if c.In.Kind == CmdKill {
			Kill(c)
		} else if c.In.Kind == CmdForeground {
			Foreground(c)
		}
	}
}

const MaxProcs = 4096

// Proc is a child of process 1 that the broker asked for.
type Proc struct {
	PID, Told int32
	Id        int64 // 0: the first program
}

// TellAfter is after how many nanoseconds the broker hears that a program has started, if it has not ended by
// then: one wake-up less for those that are over at once.
const TellAfter = 2_000_000

// MaxPlaces is how many temporary file systems process 1 looks at when the program has ended.
const MaxPlaces = 8

// Aftermath is what process 1 sees at the end of the program and nobody can see later.
type Aftermath struct {
	Places      [MaxPlaces]uintptr // paths
	Full, Nodes [MaxPlaces]int64   // 1: no room for bytes, for files
	Killed      int64              // processes that the program left behind
	Left        int64              // 1: some could not die
	Peak        int64              // most memory that one process had, in KiB, of those that process 1 has reaped
	PeakPID     int64
	st          unix.Statfs_t
}

// DieWithin is how many seconds may pass after the program's end without one more process dying of those that were
// killed.
const DieWithin = 5

// StartProgram starts the program as a child of process 1, and waits for its exec.
//
//go:noinline
//go:nosplit
//go:norace
func StartProgram(c *Control, start *[]tape.Op) {
	c.Program.Ops = *start
	pid, errno := c.Program.Clone(uintptr(unix.CLONE_VFORK|unix.SIGCHLD), nil)
	f := &c.Program.Stop
	if errno != 0 {
		f.Errno = int64(errno)
	}
	c.Main, c.Procs[0], c.Nprocs = int64(pid), Proc{PID: int32(pid), Told: 1}, 1
	// The program's standard descriptors are its own now: a pipe must see its end when it closes them.
	for fd := uintptr(FdStdio); fd < FdStdio+3; fd++ {
		syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	}
	if f.Errno != 0 {
		Send(c, EvFailed, f.Index, f.Errno, 0)
		tape.Exit(1)
	}
	if c.Announce != 0 {
		Send(c, EvMain, c.Main, 0, 0)
	}
}

// Wake waits for something to happen, and says whether it is about a child. What serve calls is as shallow as can be:
// the stack is short.
//
//go:noinline
//go:nosplit
//go:norace
func Wake(c *Control, timeout uintptr) bool {
	c.poll[0].Revents, c.poll[1].Revents = 0, 0
	syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&c.poll[0])), 2, timeout, 0, 0, 0)
	if c.poll[1].Revents == 0 {
		return false
	}
	syscall.RawSyscall(syscall.SYS_READ, fdSignal, uintptr(unsafe.Pointer(&c.siginfo[0])), uintptr(len(c.siginfo)))
	return true
}

// TakeCommand says whether there is a command, and leaves it in c.in. It ends process 1 where nobody can send one any
// more.
//
//go:noinline
//go:nosplit
//go:norace
func TakeCommand(c *Control) bool {
	if c.poll[0].Revents == 0 {
		return false
	}
	c.Hdr.Controllen = uint64(len(c.Cmsg))
	n, _, _ := syscall.RawSyscall(syscall.SYS_RECVMSG, FdSock, uintptr(unsafe.Pointer(&c.Hdr)), unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if n == unsafe.Sizeof(c.In) {
		return true
	} else if c.poll[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 || n == 0 {
		tape.Exit(1)
	}
	return false
}

// Reap reports what has ended, and returns true at the end of the program.
//
//go:noinline
//go:nosplit
//go:norace
func Reap(c *Control) bool {
	c.Last.Killed = 0
	for {
		v, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&c.Status)), unix.WNOHANG|unix.WUNTRACED, uintptr(unsafe.Pointer(&c.usage)), 0, 0)
		pid := int64(v)
		if e != 0 || pid <= 0 {
			return false
		}
		weigh(c, pid)
		at := int64(-1)
		for i := int64(0); i < c.Nprocs; i++ {
			if int64(c.Procs[i&(MaxProcs-1)].PID) == pid {
				at = i
				break
			}
		}
		if at < 0 {
			if c.Status&0xff != 0x7f {
				c.Last.Killed++ // became process 1's together with the end of the program, if this is that
			}
			continue
		}
		is := c.Procs[at&(MaxProcs-1)]
		if c.Status&0xff == 0x7f {
			Send(c, EvStopped, pid, int64(c.Status), is.Id)
			continue
		}
		if is.Told == 0 {
			c.Untold--
		}
		c.Nprocs--
		c.Procs[at&(MaxProcs-1)] = c.Procs[c.Nprocs&(MaxProcs-1)]
		if pid == c.Main && c.ExitWithMain != 0 {
			return true
		}
		if c.Status != 0 {
			LookAtPlaces(c)
		}
		Send(c, EvExited, pid, int64(c.Status), is.Id)
	}
}

// End kills and reaps every other process before it reports the end of the program: whoever hears of
// it can rely on nothing being written any more. One that waits for a file system that does not answer cannot die
// before that does: it is
// left behind, with its death pending. Where some may belong to subordinate ids it cannot do so, and the caller
// ends the whole PID namespace when it hears.
//
//go:noinline
//go:nosplit
//go:norace
func End(c *Control, pid, status int64) {
	// With no child nobody is left, and the kernel would look at every process of the host for one.
	if _, _, e := syscall.RawSyscall6(syscall.SYS_WAITID, unix.P_ALL, 0, 0, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, 0, 0); e != unix.ECHILD {
		syscall.RawSyscall(syscall.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0)
	}
	for c.ManyIDs == 0 {
		v, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&c.Status)), unix.WNOHANG, uintptr(unsafe.Pointer(&c.usage)), 0, 0)
		if e == 0 && v != 0 {
			c.Last.Killed++
			weigh(c, int64(v))
			continue
		}
		if e == 0 {
			c.Timeout = unix.Timespec{Sec: DieWithin}
			n, _, pe := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&c.poll[1])), 1, uintptr(unsafe.Pointer(&c.Timeout)), 0, 0, 0)
			if pe == 0 && n != 0 {
				syscall.RawSyscall(syscall.SYS_READ, fdSignal, uintptr(unsafe.Pointer(&c.siginfo[0])), uintptr(len(c.siginfo)))
				continue
			}
			if pe == 0 {
				c.Last.Left = 1
			}
			e = pe
		}
		if e != unix.EINTR {
			break
		}
	}
	if c.Announce != 0 {
		Send(c, EvAfter, c.Last.PeakPID, c.Last.Peak, Pack(c))
	}
	Send(c, EvExited, pid, status, 0)
	// Taking the namespaces apart is much work for the kernel, and the broker has something to do now.
	for {
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, FdSock, uintptr(unsafe.Pointer(&c.In)), unsafe.Sizeof(c.In), 0, 0, 0)
		if e == 0 && n == 0 || e != 0 && e != unix.EINTR {
			tape.Exit(0)
		}
	}
}

// weigh notes the largest process.
//
//go:nosplit
//go:norace
func weigh(c *Control, pid int64) {
	if int64(c.usage.Maxrss) > c.Last.Peak {
		c.Last.Peak, c.Last.PeakPID = int64(c.usage.Maxrss), pid
	}
}

// Pack puts what is not about the largest process in one word: who shares no memory with process 1 reads it with
// unpack.
//
//go:noinline
//go:nosplit
//go:norace
func Pack(c *Control) int64 {
	v := c.Last.Killed<<1 | c.Last.Left
	for i := 0; i < MaxPlaces; i++ {
		v = v<<2 | c.Last.Full[i]<<1 | c.Last.Nodes[i]
	}
	return v
}

// LookAtPlaces notes which temporary file systems are full. On arm64 the stack has no room for RawSyscall in between
// here.
//
//go:noinline
//go:nosplit
//go:norace
func LookAtPlaces(c *Control) {
	for i := 0; i < MaxPlaces && c.Last.Places[i] != 0; i++ {
		st := &c.Last.st
		if _, _, e := syscall.RawSyscall6(syscall.SYS_STATFS, c.Last.Places[i], uintptr(unsafe.Pointer(st)), 0, 0, 0, 0); e != 0 {
			continue
		}
		c.Last.Full[i], c.Last.Nodes[i] = 0, 0
		if st.Bavail*64 < st.Blocks {
			c.Last.Full[i] = 1
		}
		if st.Files > 0 && st.Ffree*64 < st.Files {
			c.Last.Nodes[i] = 1
		}
	}
}

// Kill is a function of its own to keep the frame of obey small: what it calls needs the stack.
//
//go:noinline
//go:nosplit
//go:norace
func Kill(c *Control) {
	_, _, e := syscall.RawSyscall(syscall.SYS_KILL, uintptr(c.In.PID), uintptr(c.In.Value), 0)
	if c.In.Extra != 0 {
		Send(c, EvKilled, c.In.Extra, int64(e), 0)
	}
}

// Foreground makes a process group the foreground of the terminal, which only a process of the terminal's session can
// do. Process 1
// has SIGTTOU blocked, so the kernel lets it do that from the background.
//
//go:noinline
//go:nosplit
//go:norace
func Foreground(c *Control) {
	if c.Hdr.Controllen == 0 { // no room for one more descriptor
		return
	}
	fd := uintptr(*(*int32)(unsafe.Pointer(&c.Cmsg[unix.SizeofCmsghdr])))
	syscall.RawSyscall(syscall.SYS_IOCTL, fd, unix.TIOCSPGRP, uintptr(unsafe.Pointer(&c.In.PID)))
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
}
