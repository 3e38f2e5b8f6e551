package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Event kinds that process 1 sends and command kinds that it takes. Both are four 64-bit words in one
// SEQPACKET message; descriptors ride along where the kind says so.
const (
	evReady       = 1 + iota // the set-up is done; descriptors in the order of Plan.Fds follow
	evFuse                   // one /dev/fuse descriptor, sent while the set-up goes on
	evFailed                 // pid, fault of the program's start is in the control block
	evExited                 // pid, wait status, id of the start
	evStopped                // pid, wait status, id of the start
	cmdKill                  // pid (or minus a process group), signal, number that evKilled is to carry, or 0
	evStarted                // pid, id of the start, errno
	evPty                    // 0, id of the start; sent by the program's own process, the master rides along
	evKilled                 // number of the command, errno
	cmdSpawn                 // 0, slot; descriptors 0, 1 and 2 ride along
	cmdBegin                 // the tapes are complete
	cmdGo                    // the root's file system is there (set-up only)
	evFault                  // where the set-up stopped: instruction, errno; only where announce is set
	evMain                   // pid of the program; only where announce is set
	evAfter                  // pid and KiB of aftermath's peak, the rest of it in extra; only where announce is set, before the last evExited
	evMaps                   // the set-up waits for its identity maps, which somebody else writes, and for cmdGo
	evTree                   // the root of a tree that the broker alone writes rides along, sent while the set-up goes on
	cmdForeground            // process group; the terminal whose foreground it is to be rides along
)

// message is what travels on the socket.
type message struct{ kind, pid, value, extra int64 }

// control is the memory that the broker and process 1 share: it is mapped before the clone and never
// reachable from inside, since the program's exec drops the mapping and process 1 is not dumpable.
type control struct {
	setup        fault
	regs         registers
	program      job // the sandbox's first
	main         int64
	exitWithMain int64
	manyIDs      int64 // process 1 may not kill all others, because not all are its own user's
	announce     int64 // nobody shares this memory: what the broker must know goes over the socket
	procs        [maxProcs]proc
	nprocs       int64
	untold       int64         // how many of procs the broker has not heard of
	tell         int64         // when it will, in nanoseconds
	now, timeout unix.Timespec // for ppoll
	poll         [2]unix.PollFd
	status       int32
	_            int32
	usage        unix.Rusage
	last         aftermath
	siginfo      [128]byte
	in, out      message
	hdr          unix.Msghdr // for reading a command
	iov          unix.Iovec
	cmsg         [64]byte
}

func (c *control) init() {
	c.poll = [2]unix.PollFd{{Fd: fdSock, Events: unix.POLLIN}, {Fd: fdSignal, Events: unix.POLLIN}}
	c.setup.index, c.program.fault.index = -1, -1
	c.iov.Base = (*byte)(unsafe.Pointer(&c.in))
	c.iov.SetLen(int(unsafe.Sizeof(c.in)))
	c.hdr.Iov, c.hdr.Control = &c.iov, &c.cmsg[0]
	c.hdr.SetIovlen(1)
}

func (m *message) encode() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

// encoded is m as a tape sends it.
func encoded(m message) []byte { return m.encode() }

func decodeMessage(b []byte) (m message, ok bool) {
	if len(b) != int(unsafe.Sizeof(m)) {
		return m, false
	}
	copy(m.encode(), b)
	return m, true
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

//go:nosplit
//go:norace
func send(c *control, kind, pid, value, extra int64) {
	c.out = message{kind: kind, pid: pid, value: value, extra: extra}
	syscall.RawSyscall6(syscall.SYS_SENDTO, fdSock, uintptr(unsafe.Pointer(&c.out)), unsafe.Sizeof(c.out), unix.MSG_NOSIGNAL, 0, 0)
}
