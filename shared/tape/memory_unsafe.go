//go:build linux

package tape

import "unsafe"

// Ptr returns the address of a copy of what v is now, in the tape's arena. It must not point to the heap.
func Ptr[T any](t *Tape, v *T) uintptr {
	return t.Arena.put(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)))
}

// Str returns the address of a NUL-terminated copy of s.
func (t *Tape) Str(s string) uintptr {
	at := t.Arena.Used
	p := t.Arena.take(len(s) + 1)
	if !t.Arena.Full {
		t.Arena.Data[at+copy(t.Arena.Data[at:], s)] = 0
	}
	return p
}

// Buf returns the address of a buffer of n bytes, aligned for any system call.
func (t *Tape) Buf(n int) uintptr {
	at := t.Arena.Used
	p := t.Arena.take(n)
	if !t.Arena.Full {
		clear(t.Arena.Data[at:t.Arena.Used]) // what was there before is another tape's
	}
	return p
}

// Bytes returns the address of a copy of b.
func (t *Tape) Bytes(b []byte) uintptr { return t.Arena.put(b) }

// At is where this process can write what the tape will find at address p.
func (a *Arena) At(p uintptr) unsafe.Pointer { return unsafe.Pointer(&a.Data[p-a.Base]) }

// Address is the pointer to the memory at a, which is not Go's.
func Address(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// Expect64 fails the tape with errno unless the 64 bits at addr are v.
func (t *Tape) Expect64(addr uintptr, v uint64, errno uintptr) {
	t.Add(Op{Kind: opExpect, A: [6]uintptr{addr, uintptr(v), errno}})
}

// Poke stores the low 32 bits of register r at addr.
func (t *Tape) Poke(addr uintptr, r uint8) {
	t.Add(Op{Kind: opPoke, Reg: [6]uint8{r}, A: [6]uintptr{addr}})
}
