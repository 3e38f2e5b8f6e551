package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of the tapes. Nothing of this is memory before it is touched.
const (
	maxOps    = 64 << 10
	arenaSize = 24 << 20 // argument and environment lists are the largest things in it: 6 MiB at most (execve(2))
)

// arena hands out pieces of memory that was mapped before the clone, at the same address on both sides.
type arena struct {
	data []byte
	base uintptr // the address that data has, or will have, where the tape is carried out
	used int
	full bool // something did not fit, and its address is wrong
}

func newArena(data []byte) *arena {
	return &arena{data: data, base: uintptr(unsafe.Pointer(unsafe.SliceData(data)))}
}

// take returns the address of n zero bytes, aligned for any system call.
func (a *arena) take(n int) uintptr {
	n = (max(n, 1) + 7) &^ 7
	if n > len(a.data)-a.used {
		a.full = true
		return a.base
	}
	p := a.base + uintptr(a.used)
	a.used += n
	return p
}

// put returns the address of a copy of b.
func (a *arena) put(b []byte) uintptr {
	at := a.used
	p := a.take(len(b))
	if !a.full {
		copy(a.data[at:], b)
	}
	return p
}

// block is what the broker and process 1 share: both tapes and everything that they point to. Process 1
// is cloned before there is a plan, so nothing of the broker's heap that came later exists there.
type block struct {
	control control
	prog    program
	setup   [maxOps]op
	start   [256]op
	data    [arenaSize]byte
}

// newBlock makes a block that process 1 shares (MAP_SHARED) or has a copy of (MAP_PRIVATE).
func newBlock(kind int) (*block, []byte, error) {
	m, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(block{})), unix.PROT_READ|unix.PROT_WRITE, kind|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, err
	}
	b := (*block)(unsafe.Pointer(&m[0]))
	b.control.setup.index = -1
	b.init()
	return b, m, nil
}

func (b *block) init() {
	b.control.init()
	b.prog.c = &b.control
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
