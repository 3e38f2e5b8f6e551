//go:build linux

package child

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// A program that is started later has its tape in memory that process 1 shares with the broker: what the
// broker allocates after the clone does not exist there. Each program between its clone and its exec
// occupies one slot; nothing of a slot is touched, and so none of it is memory, before it is needed.
const (
	maxSlots  = 32
	slotOps   = 512
	slotArena = 256 << 10
	// The last slot is for programs that fit no other. The kernel takes 6 MiB of arguments and environment (execve(2)), of
	// which the shortest string is 9 bytes there and 16 here.
	wideSlot  = maxSlots - 1
	wideArena = 12 << 20
)

// slot is one start. The kernel clears busy when the program has left this memory, by exec or exit
// (CLONE_CHILD_CLEARTID): process 1 need not wait for that, which may take as long as a person thinks
// about whether the program may be executed, or as a stranger inside who stops it likes.
type slot struct {
	busy  int32
	_     int32
	id    int64
	job   tape.Job // its tape is in ops
	ops   [slotOps]tape.Op
	arena [slotArena]byte
}

// free says whether nobody uses the slot's memory.
func (s *slot) free() bool { return atomic.LoadInt32(&s.busy) == 0 }

// take makes slot i the home of the program id and returns an empty tape in it.
func (b *Block) take(i int, id int64) *tape.Tape {
	s, arena := &b.slots[i], b.slots[i].arena[:]
	if i == wideSlot {
		arena = b.wide[:]
	}
	s.id, s.job.Stop = id, tape.Stop{Index: -1}
	s.job.Regs = tape.Registers{}
	atomic.StoreInt32(&s.busy, 1)
	return &tape.Tape{Ops: s.ops[:0:slotOps], Fixed: true, Arena: tape.NewArena(arena)}
}

// load makes the finished tape the slot's.
func (s *slot) load(t *tape.Tape) { s.job.Ops = t.Ops }

// release gives a slot back that process 1 has not heard of.
func (s *slot) release() { atomic.StoreInt32(&s.busy, 0) }

// sendFd makes the instruction that sends the descriptor in register r with m.
func sendFd(t *tape.Tape, m stage.Message, r uint8) {
	rights := unix.UnixRights(-1)
	cmsg := t.Bytes(rights)
	t.Poke(cmsg+uintptr(unix.CmsgLen(0)), r)
	steps.Send(t, stage.FdSock, stage.Encoded(m), cmsg, len(rights))
}
