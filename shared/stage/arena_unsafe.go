package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
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

// mapped maps memory for a T, which a child shares (MAP_SHARED) or has a copy of (MAP_PRIVATE). Nothing of it is memory before it is touched.
func mapped[T any](kind int) (*T, func(), error) {
	m, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(*new(T))), unix.PROT_READ|unix.PROT_WRITE, kind|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, err
	}
	return (*T)(unsafe.Pointer(&m[0])), func() { _ = unix.Munmap(m) }, nil
}
