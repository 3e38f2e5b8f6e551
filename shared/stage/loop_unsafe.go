package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What process 1 does when it has given up everything, whoever cloned it: it starts the program, reaps, and reports. In sbx-helper's
// program all of this runs after leave only (selftest/linked looks whether that is so).

// tail is the beginning of the file of which process 1 carries out the rest, at the address tailAt, once it has no privilege: what
// is in there it does with its caller's rights, and a caller could as well have a program of theirs do it.
type tail struct {
	rest, start []op
	places      [maxPlaces]uintptr
}

// afterLeave never returns. Nothing is left of the privileges, and x is the caller's, whatever is in there.
//
//go:noinline
//go:nosplit
//go:norace
func afterLeave(x *tail, c *control) {
	c.last.places = x.places
	if !runTape(x.rest, &c.regs, &c.setup) {
		c.setup.index += ofTail
		stopped(c)
	}
	spawn(c, &x.start)
	for {
		if wake(c, 0) && reap(c) {
			lookAtPlaces(c)
			end(c, c.main, int64(c.status))
		}
		if !take(c) {
			continue
		}
		if c.in.kind == cmdKill {
			kill(c)
		} else if c.in.kind == cmdForeground {
			foreground(c)
		}
	}
}

const maxProcs = 4096

// proc is a child of process 1 that the broker asked for.
type proc struct {
	pid, told int32
	id        int64 // 0: the first program
}

// tellAfter is after how many nanoseconds the broker hears that a program has started, if it has not ended by
// then: one wake-up less for those that are over at once.
const tellAfter = 2_000_000

// maxPlaces is how many temporary file systems process 1 looks at when the program has ended.
const maxPlaces = 8

// aftermath is what process 1 sees at the end of the program and nobody can see later.
type aftermath struct {
	places      [maxPlaces]uintptr // paths
	full, nodes [maxPlaces]int64   // 1: no room for bytes, for files
	killed      int64              // processes that the program left behind
	left        int64              // 1: some could not die
	peak        int64              // most memory that one process had, in KiB, of those that process 1 has reaped
	peakPID     int64
	st          unix.Statfs_t
}

// dieWithin is how many seconds may pass after the program's end without one more process dying of those that were killed.
const dieWithin = 5

// spawn starts the program as a child of process 1, and waits for its exec.
//
//go:noinline
//go:nosplit
//go:norace
func spawn(c *control, start *[]op) {
	c.program.ops = *start
	pid, errno := c.program.clone(uintptr(unix.CLONE_VFORK|unix.SIGCHLD), nil)
	f := &c.program.fault
	if errno != 0 {
		f.errno = int64(errno)
		send(c, evFailed, f.index, f.errno, 0)
		exit(1)
	}
	c.main = int64(pid)
	c.procs[0] = proc{pid: int32(pid), told: 1}
	c.nprocs = 1
	// The program's standard descriptors are its own now: a pipe must see its end when it closes them.
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, fdStdio, fdStdio+2, 0)
	if f.errno != 0 {
		send(c, evFailed, f.index, f.errno, 0)
		exit(1)
	}
	if c.announce != 0 {
		send(c, evMain, c.main, 0, 0)
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
	// With no child nobody is left, and the kernel would look at every process of the host for one.
	if _, _, e := syscall.RawSyscall6(syscall.SYS_WAITID, unix.P_ALL, 0, 0, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, 0, 0); e != unix.ECHILD {
		syscall.RawSyscall(syscall.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0)
	}
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

// foreground makes a process group the foreground of the terminal, which only a process of the terminal's session can do. Process 1
// has SIGTTOU blocked, so the kernel lets it do that from the background.
//
//go:noinline
//go:nosplit
//go:norace
func foreground(c *control) {
	if c.hdr.Controllen == 0 { // no room for one more descriptor
		return
	}
	fd := uintptr(*(*int32)(unsafe.Pointer(&c.cmsg[unix.SizeofCmsghdr])))
	syscall.RawSyscall(syscall.SYS_IOCTL, fd, unix.TIOCSPGRP, uintptr(unsafe.Pointer(&c.in.pid)))
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
}
