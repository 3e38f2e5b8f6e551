//go:build linux

package child

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/tape"
)

// filter returns the address of a seccomp program (seccomp(2), struct sock_fprog).
func filter(t *tape.Tape, prog []unix.SockFilter) uintptr {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(prog))), len(prog)*unix.SizeofSockFilter)
	return tape.Ptr(t, &[2]uintptr{uintptr(uint16(len(prog))), t.Bytes(b)})
}
