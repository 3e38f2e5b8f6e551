//go:build linux

package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/tape"
)

// Event kinds that process 1 sends and command kinds that it takes. Both are four 64-bit words in one
// SEQPACKET message; descriptors ride along where the kind says so.
const (
	EvReady   = 1 + iota // the set-up is done; descriptors in the order of Plan.Fds follow
	EvFuse               // one /dev/fuse descriptor, sent while the set-up goes on
	EvFailed             // pid, fault of the program's start is in the control block
	EvExited             // pid, wait status, id of the start
	EvStopped            // pid, wait status, id of the start
	CmdKill              // pid (or minus a process group), signal, number that EvKilled is to carry, or 0
	EvStarted            // pid, id of the start, errno
	EvPty                // 0, id of the start; sent by the program's own process, the master rides along
	EvKilled             // number of the command, errno
	CmdSpawn             // 0, slot; descriptors 0, 1 and 2 ride along
	CmdBegin             // the tapes are complete
	CmdGo                // what was waited for is there (steps.AwaitGo)
	EvFault              // where the set-up stopped: instruction, errno; only where Announce is set
	EvMain               // pid of the program; only where Announce is set
	// Pid and KiB of aftermath's peak, the rest of it in extra; only where Announce is set, before the last EvExited.
	EvAfter
	EvMaps        // the set-up waits for its identity maps, which somebody else writes, and for CmdGo
	EvTree        // the root of a tree that the broker alone writes rides along, sent while the set-up goes on
	CmdForeground // process group; the terminal whose foreground it is to be rides along
)

// Message is what travels on the socket.
type Message struct{ Kind, PID, Value, Extra int64 }

// Control is the memory that the broker and process 1 share: it is mapped before the clone and never
// reachable from inside, since the program's exec drops the mapping and process 1 is not dumpable.
type Control struct {
	Setup        tape.Stop
	Regs         tape.Registers
	Program      tape.Job // the sandbox's first
	Main         int64
	ExitWithMain int64
	ManyIDs      int64 // process 1 may not kill all others, because not all are its own user's
	Announce     int64 // nobody shares this memory: what the broker must know goes over the socket
	Procs        [MaxProcs]Proc
	Nprocs       int64
	Untold       int64         // how many of procs the broker has not heard of
	Tell         int64         // when it will, in nanoseconds
	Now, Timeout unix.Timespec // for ppoll
	poll         [2]unix.PollFd
	Status       int32
	_            int32
	usage        unix.Rusage
	Last         Aftermath
	siginfo      [128]byte
	In, out      Message
	Hdr          unix.Msghdr // for reading a command
	iov          unix.Iovec
	Cmsg         [64]byte
}

func (c *Control) Init() {
	c.poll = [2]unix.PollFd{{Fd: FdSock, Events: unix.POLLIN}, {Fd: fdSignal, Events: unix.POLLIN}}
	c.Setup.Index, c.Program.Stop.Index = -1, -1
	c.iov.Base = (*byte)(unsafe.Pointer(&c.In))
	c.iov.SetLen(int(unsafe.Sizeof(c.In)))
	c.Hdr.Iov, c.Hdr.Control = &c.iov, &c.Cmsg[0]
	c.Hdr.SetIovlen(1)
}

func (m *Message) Encode() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

// Encoded is m as a tape sends it.
func Encoded(m Message) []byte { return m.Encode() }

func DecodeMessage(b []byte) (m Message, ok bool) {
	if len(b) != int(unsafe.Sizeof(m)) {
		return m, false
	}
	copy(m.Encode(), b)
	return m, true
}

// Stopped ends a set-up that failed. It is a function of its own because the stack is short.
//
//go:noinline
//go:nosplit
//go:norace
func Stopped(c *Control) {
	if c.Announce != 0 {
		Send(c, EvFault, c.Setup.Index, c.Setup.Errno, 0)
	}
	tape.Exit(1)
}

//go:nosplit
//go:norace
func Send(c *Control, kind, pid, value, extra int64) {
	c.out = Message{Kind: kind, PID: pid, Value: value, Extra: extra}
	syscall.RawSyscall6(syscall.SYS_SENDTO, FdSock, uintptr(unsafe.Pointer(&c.out)), unsafe.Sizeof(c.out), unix.MSG_NOSIGNAL, 0, 0)
}
