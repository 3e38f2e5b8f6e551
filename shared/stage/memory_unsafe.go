package stage

import "unsafe"

// ptr returns the address of a copy of what v is now, in the tape's arena. It must not point to the heap.
func ptr[T any](t *tape, v *T) uintptr {
	return t.arena.put(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)))
}

// str returns the address of a NUL-terminated copy of s.
func (t *tape) str(s string) uintptr {
	at := t.arena.used
	p := t.arena.take(len(s) + 1)
	if !t.arena.full {
		t.arena.data[at+copy(t.arena.data[at:], s)] = 0
	}
	return p
}

// buf returns the address of a buffer of n bytes, aligned for any system call.
func (t *tape) buf(n int) uintptr {
	at := t.arena.used
	p := t.arena.take(n)
	if !t.arena.full {
		clear(t.arena.data[at:t.arena.used]) // what was there before is another tape's
	}
	return p
}

// bytes returns the address of a copy of b.
func (t *tape) bytes(b []byte) uintptr { return t.arena.put(b) }

// at is where this process can write what the tape will find at address p.
func (a *arena) at(p uintptr) unsafe.Pointer { return unsafe.Pointer(&a.data[p-a.base]) }

// address is the pointer to the memory at a, which is not Go's.
func address(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// expect64 fails the tape with errno unless the 64 bits at addr are v.
func (t *tape) expect64(addr uintptr, v uint64, errno uintptr) {
	t.add(op{kind: opExpect, a: [6]uintptr{addr, uintptr(v), errno}})
}

// poke stores the low 32 bits of register r at addr.
func (t *tape) poke(addr uintptr, r uint8) {
	t.add(op{kind: opPoke, reg: [6]uint8{r}, a: [6]uintptr{addr}})
}
