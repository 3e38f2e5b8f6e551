//go:build linux

package child

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Bounds of the tapes.
const (
	maxOps    = 64 << 10
	arenaSize = 24 << 20 // argument and environment lists are the largest things in it: 6 MiB at most (execve(2))
)

// Block is what the broker and process 1 share: both tapes and everything that they point to. Process 1
// is cloned before there is a plan, so nothing of the broker's heap that came later exists there.
type Block struct {
	control stage.Control
	slots   [maxSlots]slot
	prog    program
	setup   [maxOps]tape.Op
	start   [4096]tape.Op
	reaper  [64]tape.Op
	sweep   sweep
	data    [arenaSize]byte
	wide    [wideArena]byte // of wideSlot
}

func newBlock() (*Block, error) {
	b, err := tape.Map[Block](unix.MAP_SHARED)
	if err == nil {
		b.control.Init()
	}
	return b, err
}

// load makes the finished tapes the program.
func (b *Block) load(setup, start *tape.Tape, asPID1, idle bool) {
	b.prog.setup, b.prog.start, b.prog.asPID1, b.prog.idle = setup.Ops, start.Ops, asPID1, idle
}

// tapes returns the two empty tapes of the block.
func (b *Block) tapes() (setup, start *tape.Tape) {
	a := tape.NewArena(b.data[:])
	return &tape.Tape{Ops: b.setup[:0], Fixed: true, Arena: a}, &tape.Tape{Ops: b.start[:0], Fixed: true, Arena: a}
}
