package stage

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"
)

// aheadArena is an arena whose memory is the broker's, and whose addresses are those of the mapped file.
func aheadArena() *arena {
	return &arena{data: make([]byte, aheadData), base: aheadAt + unsafe.Offsetof(aheadFile{}.data)}
}

// holds says whether t is what the file holds.
func (m *aheadFile) holds(t *tape) bool {
	return uint64(len(t.ops)) == m.nops && uint64(t.arena.used) == m.used && slices.Equal(t.ops, m.ops[:m.nops]) && bytes.Equal(t.arena.data[:m.used], m.data[:m.used])
}

// encodeAhead makes the file of t; nil if the id stands in too many places.
func encodeAhead(t *tape, ids []uint32, misses uint64, alone bool) []byte {
	m := &aheadFile{magic: aheadMagic, nops: uint64(len(t.ops)), used: uint64(t.arena.used), nids: uint64(len(ids)), misses: misses}
	if len(ids) > len(m.ids) {
		return nil
	}
	if alone {
		m.alone = 1
	}
	copy(m.ids[:], ids)
	copy(m.ops[:], t.ops)
	copy(m.data[:], t.arena.data[:t.arena.used])
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

// name is the file's.
func (x *aheadEntry) name() string { return fmt.Sprintf("%016x", x.key) }

// folder is the session's, which process 1 makes.
func (x *aheadEntry) folder() string {
	return string(x.path[:x.dir]) + "/sessions/" + string(x.id[:idLength])
}

// carryAhead has process 1 carry out the tape in the file, instead of waiting for the plan's.
//
//go:noinline
//go:nosplit
//go:norace
func carryAhead(p *program) {
	m := p.ahead
	n := m.nops
	if n > aheadOps {
		n = aheadOps
	}
	if !runTape(m.ops[:n], &p.c.regs, &p.c.setup) {
		exit(1)
	}
	p.sock = fdSock // the tape has moved it
}
