//go:build linux

package faststart

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"

	"sbx.example/sbx/shared/tape"
)

// aheadArena is an arena whose memory is the broker's, and whose addresses are those of the remembered tape's.
func aheadArena() *tape.Arena {
	return &tape.Arena{Data: make([]byte, aheadData), Base: aheadAt + unsafe.Offsetof(aheadFile{}.data)}
}

// holds says whether t is what m holds.
func (m *aheadFile) holds(t *tape.Tape) bool {
	return uint64(len(t.Ops)) == m.nops && uint64(t.Arena.Used) == m.used && slices.Equal(t.Ops, m.ops[:m.nops]) &&
		bytes.Equal(t.Arena.Data[:m.used], m.data[:m.used])
}

// encodeAhead makes the file of t; nil if the id stands in too many places.
func encodeAhead(t *tape.Tape, ids []uint32, misses uint64) []byte {
	h := &aheadHeader{magic: aheadMagic, nops: uint64(len(t.Ops)), used: uint64(t.Arena.Used), nids: uint64(len(ids)),
		misses: misses}
	if len(ids) > len(h.ids) {
		return nil
	}
	copy(h.ids[:], ids)
	return slices.Concat(unsafe.Slice((*byte)(unsafe.Pointer(h)), unsafe.Sizeof(*h)),
		unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.Ops))), unsafe.Sizeof(tape.Op{})*uintptr(len(t.Ops))),
		t.Arena.Data[:t.Arena.Used])
}

// name is the file's.
func (x *aheadEntry) name() string { return fmt.Sprintf("%016x", x.key) }

// folder is the session's, which process 1 makes.
func (x *aheadEntry) folder() string {
	return string(x.path[:x.dir]) + "/sessions/" + string(x.id[:idLength])
}
