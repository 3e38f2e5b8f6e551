package stage

import (
	"unsafe"
)

// ptr pins v's memory for the life of the tape and returns its address. The Go heap does not move. With an
// arena, what is returned is the address of a copy there.
func ptr[T any](t *tape, v *T) uintptr {
	if t.arena != nil {
		return t.arena.put(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)))
	}
	t.keep = append(t.keep, v)
	return uintptr(unsafe.Pointer(v))
}

// str returns the address of a NUL-terminated copy of s.
func (t *tape) str(s string) uintptr {
	b := make([]byte, len(s)+1)
	copy(b, s)
	if t.arena != nil {
		return t.arena.put(b)
	}
	return ptr(t, &b[0])
}

// buf returns the address of a buffer of n bytes, aligned for any system call.
func (t *tape) buf(n int) uintptr {
	if t.arena != nil {
		return t.arena.put(make([]byte, n)) // what was there before is another tape's
	}
	b := make([]uint64, (n+7)/8)
	return ptr(t, &b[0])
}

func (t *tape) bytes(b []byte) uintptr {
	if len(b) == 0 {
		return t.buf(8)
	}
	if t.arena != nil {
		return t.arena.put(b)
	}
	c := append([]byte(nil), b...)
	return ptr(t, &c[0])
}

// vector returns the address of a NULL-terminated array of strings, as execve(2) takes it.
func (t *tape) vector(list []string) uintptr {
	v := make([]uintptr, len(list)+1)
	for i, s := range list {
		v[i] = t.str(s)
	}
	if t.arena != nil {
		return t.arena.put(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 8*len(v)))
	}
	return ptr(t, &v[0])
}

// expect64 fails the tape with errno unless the 64 bits at addr are v.
func (t *tape) expect64(addr uintptr, v uint64, errno uintptr) {
	t.add(op{kind: opExpect, a: [6]uintptr{addr, uintptr(v), errno}})
}

// poke stores the low 32 bits of register r at addr.
func (t *tape) poke(addr uintptr, r uint8) {
	t.add(op{kind: opPoke, reg: [6]uint8{r}, a: [6]uintptr{addr}})
}
