//go:build linux

package tape

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arena hands out pieces of memory that was mapped before the clone, at the same address on both sides.
type Arena struct {
	Data []byte
	Base uintptr // the address that data has, or will have, where the tape is carried out
	Used int
	Full bool // something did not fit, and its address is wrong
}

func NewArena(data []byte) *Arena {
	return &Arena{Data: data, Base: uintptr(unsafe.Pointer(unsafe.SliceData(data)))}
}

// take returns the address of n zero bytes, aligned for any system call.
func (a *Arena) take(n int) uintptr {
	n = (max(n, 1) + 7) &^ 7
	if n > len(a.Data)-a.Used {
		a.Full = true
		return a.Base
	}
	p := a.Base + uintptr(a.Used)
	a.Used += n
	return p
}

// put returns the address of a copy of b.
func (a *Arena) put(b []byte) uintptr {
	at := a.Used
	p := a.take(len(b))
	if !a.Full {
		copy(a.Data[at:], b)
	}
	return p
}

// Map maps memory for a T, which a child shares (MAP_SHARED) or has a copy of (MAP_PRIVATE). Nothing of it is memory
// before it is touched.
func Map[T any](kind int) (*T, error) {
	m, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(*new(T))), unix.PROT_READ|unix.PROT_WRITE, kind|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return (*T)(unsafe.Pointer(&m[0])), nil
}
