package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of the tapes.
const (
	maxOps    = 64 << 10
	arenaSize = 24 << 20 // argument and environment lists are the largest things in it: 6 MiB at most (execve(2))
)

// block is what the broker and process 1 share: both tapes and everything that they point to. Process 1
// is cloned before there is a plan, so nothing of the broker's heap that came later exists there.
type block struct {
	control control
	slots   [maxSlots]slot
	prog    program
	setup   [maxOps]op
	start   [256]op
	data    [arenaSize]byte
}

func newBlock() (*block, error) {
	b, _, err := mapped[block](unix.MAP_SHARED)
	if err == nil {
		b.control.init()
	}
	return b, err
}

// unmap gives the memory back. Nobody may have it any more.
func (b *block) unmap() {
	_ = unix.MunmapPtr(unsafe.Pointer(b), unsafe.Sizeof(*b))
}

// load makes the finished tapes the program.
func (b *block) load(setup, start *tape, asPID1, idle bool) {
	b.prog.setup, b.prog.start, b.prog.asPID1, b.prog.idle = setup.ops, start.ops, asPID1, idle
}

// tapes returns the two empty tapes of the block.
func (b *block) tapes() (setup, start *tape) {
	a := newArena(b.data[:])
	return &tape{ops: b.setup[:0], fixed: true, arena: a}, &tape{ops: b.start[:0], fixed: true, arena: a}
}
