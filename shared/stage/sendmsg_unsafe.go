package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendmsg sends one message, with a control message where rights is not 0.
func (t *tape) sendmsg(m message, rights uintptr, n int) {
	payload := &m
	iov := &unix.Iovec{Base: &payload.encode()[0], Len: uint64(len(payload.encode()))}
	hdr := &unix.Msghdr{Iov: iov, Iovlen: 1}
	if rights != 0 {
		setControl(hdr, rights, n)
	}
	t.keep = append(t.keep, payload, iov)
	t.call(unix.SYS_SENDMSG, fdSock, ptr(t, hdr), unix.MSG_NOSIGNAL)
}

// setControl points hdr at memory that is kept alive elsewhere and known by its address.
func setControl(hdr *unix.Msghdr, addr uintptr, n int) {
	*(*uintptr)(unsafe.Pointer(&hdr.Control)) = addr
	hdr.Controllen = uint64(n)
}
