package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendmsg sends one message, with a control message where rights is not 0.
func (t *tape) sendmsg(m message, rights uintptr, n int) {
	// Go's own structures hold pointers, which the arena's memory must not.
	iov := [2]uintptr{ptr(t, &m), unsafe.Sizeof(m)}
	hdr := t.buf(int(unsafe.Sizeof(unix.Msghdr{})))
	if !t.arena.full {
		h := (*unix.Msghdr)(t.arena.at(hdr))
		*(*uintptr)(unsafe.Pointer(&h.Iov)) = ptr(t, &iov)
		*(*uintptr)(unsafe.Pointer(&h.Control)) = rights
		h.SetIovlen(1)
		h.SetControllen(n)
	}
	t.call(unix.SYS_SENDMSG, fdSock, hdr, unix.MSG_NOSIGNAL)
}

// filter returns the address of a seccomp program (seccomp(2), struct sock_fprog).
func (t *tape) filter(prog []unix.SockFilter) uintptr {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(prog))), len(prog)*unix.SizeofSockFilter)
	return ptr(t, &[2]uintptr{uintptr(uint16(len(prog))), t.bytes(b)})
}
