//go:build linux

package steps

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Send sends one message on sock, with a control message where rights is not 0.
func Send(t *tape.Tape, sock uintptr, m []byte, rights uintptr, n int) {
	// Go's own structures hold pointers, which the arena's memory must not.
	iov := [2]uintptr{t.Bytes(m), uintptr(len(m))}
	hdr := t.Buf(int(unsafe.Sizeof(unix.Msghdr{})))
	if !t.Arena.Full {
		h := (*unix.Msghdr)(t.Arena.At(hdr))
		*(*uintptr)(unsafe.Pointer(&h.Iov)) = tape.Ptr(t, &iov)
		*(*uintptr)(unsafe.Pointer(&h.Control)) = rights
		h.SetIovlen(1)
		h.SetControllen(n)
	}
	t.Call(unix.SYS_SENDMSG, sock, hdr, unix.MSG_NOSIGNAL)
}

// AwaitGo waits on sock for the word to go on, and fails the tape when anything else comes, or nobody is left to send
// it.
func AwaitGo(t *tape.Tape, sock uintptr) {
	buf := t.Buf(64)
	t.Call(unix.SYS_RECVFROM, sock, buf, 64, 0, 0, 0)
	t.Expect64(buf, stage.CmdGo, uintptr(unix.EPROTO))
}

// Go is the word that AwaitGo waits for.
func Go(sock int) error {
	m := stage.Message{Kind: stage.CmdGo}
	return unix.Sendto(sock, m.Encode(), unix.MSG_NOSIGNAL, nil)
}

// Vector returns the address of a NULL-terminated array of strings, as execve(2) takes it.
func Vector(t *tape.Tape, list []string) uintptr {
	p := t.Buf(8 * (len(list) + 1))
	for i, s := range list {
		if a := t.Str(s); !t.Arena.Full {
			*(*uintptr)(t.Arena.At(p + uintptr(8*i))) = a
		}
	}
	return p
}

// listEnd is less than what an answer of a page holds as a listing however long its names are, with the entries that
// come along: an answer that is shorter is the last one.
const (
	ListBuffer = 8 << 10
	listEnd    = 400
)

// List reads a directory to its end.
func List(t *tape.Tape, dir string, buf uintptr) {
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW,
		0).To(tape.RegA)
	t.Call(unix.SYS_GETDENTS64, 0, buf, ListBuffer).From(0, tape.RegA).Repeat(listEnd)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
}

// WriteFile writes text to the file at path, which is there.
func WriteFile(t *tape.Tape, path, text string) {
	t.At("writing", path)
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(path), unix.O_WRONLY|unix.O_CLOEXEC, 0).To(tape.RegA)
	WriteText(t, text)
}

// WriteText writes text to the file in RegA, and closes it.
func WriteText(t *tape.Tape, text string) {
	t.Call(unix.SYS_WRITE, 0, t.Str(text), uintptr(len(text))).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
}

// Unmap gives back what tape.Map has mapped. Nobody may have it any more.
func Unmap[T any](m *T) {
	_ = unix.MunmapPtr(unsafe.Pointer(m), unsafe.Sizeof(*m))
}
