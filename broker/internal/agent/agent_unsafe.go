//go:build linux

package agent

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Bounds of one order to the agent.
const (
	agentOps  = 64
	agentData = 32 << 10
)

// agentBlock is the memory that the broker and the agent share. The agent runs the instructions that the broker has put
// there whenever a byte comes over the socket; it knows no orders of its own.
type agentBlock struct {
	nsetup, n   int64
	begun       int64 // 1 from the first instruction of the order in ops on
	setup       [agentOps]tape.Op
	ops         [agentOps]tape.Op
	after       [4]tape.Op // always carried out, whatever became of ops
	regs        tape.Registers
	fault, late tape.Stop
	in          [8]byte
	hdr         unix.Msghdr
	iov         unix.Iovec
	rights      [32]byte
	data        [agentData]byte
}

func newAgentBlock() (*agentBlock, error) {
	m, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(agentBlock{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|
		unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("mapping the agent's memory: %w", err)
	}
	b := (*agentBlock)(unsafe.Pointer(&m[0]))
	b.iov = unix.Iovec{Base: &b.in[0], Len: 1}
	b.hdr = unix.Msghdr{Iov: &b.iov, Iovlen: 1, Control: &b.rights[0]}
	return b, nil
}

// hand makes the next reply carry the descriptor in register r.
func (b *agentBlock) hand(t *tape.Tape, r uint8) {
	rights := unix.UnixRights(-1)
	copy(b.rights[:], rights)
	b.hdr.Controllen = uint64(len(rights))
	t.Poke(uintptr(unsafe.Pointer(&b.rights[unix.CmsgLen(0)])), r)
}

// launchAgent clones the agent. In the child it never returns.
//
//go:noinline
//go:nosplit
//go:norace
func launchAgent(b *agentBlock) (pid, errno uintptr) {
	if pid, errno = tape.Fork(0); errno != 0 || pid != 0 {
		return pid, errno
	}
	forgetHeap()
	ok := tape.Run(b.setup[:b.nsetup&(agentOps-1)], &b.regs, &b.fault)
	answer(b)
	for ok {
		n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, stage.FdSock, uintptr(unsafe.Pointer(&b.in[0])), 1, 0, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if n != 1 || e != 0 {
			break
		}
		b.begun = 1
		if !tape.Run(b.ops[:b.n&(agentOps-1)], &b.regs, &b.fault) {
			b.hdr.Controllen = 0 // what was to be handed over is none: the kernel would send no answer at all
		}
		answer(b)
		tape.Run(b.after[:], &b.regs, &b.late)
	}
	tape.Exit(1)
	return 0, 0
}

// forgetHeap gives up the agent's copy of the heap but for what is around its stack: it uses nothing of that, and each
// page that the broker writes would stay behind as the agent's own. Where the ranges are wrong nothing is lost but
// memory, or the agent with its next instruction.
//
//go:nosplit
//go:norace
func forgetHeap() {
	const arena, page, around = 64 << 20, 4 << 10, 16 << 10 // as the runtime lays it out
	var here byte
	sp := uintptr(unsafe.Pointer(&here))
	from, low := sp&^(arena-1), sp&^(page-1)-around
	if low > from {
		syscall.RawSyscall(syscall.SYS_MADVISE, from, low-from, unix.MADV_DONTNEED)
	}
	if high := low + 2*around; high < from+arena {
		syscall.RawSyscall(syscall.SYS_MADVISE, high, from+arena-high, unix.MADV_DONTNEED)
	}
}

//go:nosplit
//go:norace
func answer(b *agentBlock) {
	syscall.RawSyscall(syscall.SYS_SENDMSG, stage.FdSock, uintptr(unsafe.Pointer(&b.hdr)), unix.MSG_NOSIGNAL)
}
