package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// fault is where a tape stopped.
type fault struct{ index, errno int64 }

// Event kinds that process 1 sends and command kinds that it takes. Both are four 64-bit words in one
// SEQPACKET message; descriptors ride along where the kind says so.
const (
	evReady   = 1 + iota // the set-up is done; descriptors in the order of Plan.Fds follow
	evFuse               // one /dev/fuse descriptor, sent while the set-up goes on
	evFailed             // pid, fault of the program's start is in the control block
	evExited             // pid, wait status
	evStopped            // pid, wait status
	cmdKill              // pid (or minus a process group), signal
	evStarted            // pid, id of the start, errno
	evPty                // 0, id of the start; sent by the program's own process, the master rides along
	cmdSpawn             // 0, slot; descriptors 0, 1 and 2 ride along
	cmdBegin             // the tapes are complete
	cmdGo                // the root's file system is there (set-up only)
)

// message is what travels on the socket.
type message struct{ kind, pid, value, extra int64 }

const maxProcs = 4096

// control is the memory that the broker and process 1 share: it is mapped before the clone and never
// reachable from inside, since the program's exec drops the mapping and process 1 is not dumpable.
type control struct {
	setup, start fault
	regs, pregs  registers
	main         int64
	exitWithMain int64
	procs        [maxProcs]int32
	nprocs       int64
	poll         [2]unix.PollFd
	status       int32
	_            int32
	siginfo      [128]byte
	in, out      message
	hdr          unix.Msghdr // for reading a command
	iov          unix.Iovec
	cmsg         [64]byte
	slots        [maxSlots]slot
}

func (c *control) init() {
	c.poll = [2]unix.PollFd{{Fd: fdSock, Events: unix.POLLIN}, {Fd: fdSignal, Events: unix.POLLIN}}
	c.start.index, c.setup.index = -1, -1
	c.iov.Base = (*byte)(unsafe.Pointer(&c.in))
	c.iov.SetLen(int(unsafe.Sizeof(c.in)))
	c.hdr.Iov, c.hdr.Control = &c.iov, &c.cmsg[0]
	c.hdr.SetIovlen(1)
}

func (m *message) encode() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

func decodeMessage(b []byte) (m message, ok bool) {
	if len(b) != int(unsafe.Sizeof(m)) {
		return m, false
	}
	copy(m.encode(), b)
	return m, true
}
