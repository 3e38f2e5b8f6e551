package stage

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"
)

// aheadArena is an arena whose memory is the broker's, and whose addresses are those of the remembered tape's.
func aheadArena() *arena {
	return &arena{data: make([]byte, aheadData), base: aheadAt + unsafe.Offsetof(aheadFile{}.data)}
}

// holds says whether t is what m holds.
func (m *aheadFile) holds(t *tape) bool {
	return uint64(len(t.ops)) == m.nops && uint64(t.arena.used) == m.used && slices.Equal(t.ops, m.ops[:m.nops]) && bytes.Equal(t.arena.data[:m.used], m.data[:m.used])
}

// encodeAhead makes the file of t; nil if the id stands in too many places.
func encodeAhead(t *tape, ids []uint32, misses uint64, alone bool) []byte {
	h := &aheadHeader{magic: aheadMagic, nops: uint64(len(t.ops)), used: uint64(t.arena.used), nids: uint64(len(ids)), misses: misses}
	if len(ids) > len(h.ids) {
		return nil
	}
	if alone {
		h.alone = 1
	}
	copy(h.ids[:], ids)
	return slices.Concat(unsafe.Slice((*byte)(unsafe.Pointer(h)), unsafe.Sizeof(*h)),
		unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.ops))), unsafe.Sizeof(op{})*uintptr(len(t.ops))), t.arena.data[:t.arena.used])
}

// name is the file's.
func (x *aheadEntry) name() string { return fmt.Sprintf("%016x", x.key) }

// folder is the session's, which process 1 makes.
func (x *aheadEntry) folder() string {
	return string(x.path[:x.dir]) + "/sessions/" + string(x.id[:idLength])
}
