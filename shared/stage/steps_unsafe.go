package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendmsg sends one message on sock, with a control message where rights is not 0.
func sendmsg(t *tape, sock uintptr, m []byte, rights uintptr, n int) {
	// Go's own structures hold pointers, which the arena's memory must not.
	iov := [2]uintptr{t.bytes(m), uintptr(len(m))}
	hdr := t.buf(int(unsafe.Sizeof(unix.Msghdr{})))
	if !t.arena.full {
		h := (*unix.Msghdr)(t.arena.at(hdr))
		*(*uintptr)(unsafe.Pointer(&h.Iov)) = ptr(t, &iov)
		*(*uintptr)(unsafe.Pointer(&h.Control)) = rights
		h.SetIovlen(1)
		h.SetControllen(n)
	}
	t.call(unix.SYS_SENDMSG, sock, hdr, unix.MSG_NOSIGNAL)
}

// vector returns the address of a NULL-terminated array of strings, as execve(2) takes it.
func vector(t *tape, list []string) uintptr {
	p := t.buf(8 * (len(list) + 1))
	for i, s := range list {
		if a := t.str(s); !t.arena.full {
			*(*uintptr)(t.arena.at(p + uintptr(8*i))) = a
		}
	}
	return p
}

// listEnd is less than what an answer of a page holds as a listing however long its names are, with the entries that come
// along: an answer that is shorter is the last one.
const (
	listBuffer = 8 << 10
	listEnd    = 400
)

// list reads a directory to its end.
func list(t *tape, dir string, buf uintptr) {
	t.call(unix.SYS_OPENAT, atCwd, t.str(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0).to(regA)
	t.call(unix.SYS_GETDENTS64, 0, buf, listBuffer).from(0, regA).repeat(listEnd)
	t.call(unix.SYS_CLOSE).from(0, regA)
}

// writeFile writes text to the file at path, which is there.
func writeFile(t *tape, path, text string) {
	t.at("writing", path)
	t.call(unix.SYS_OPENAT, atCwd, t.str(path), unix.O_WRONLY|unix.O_CLOEXEC, 0).to(regA)
	writeText(t, text)
}

// writeText writes text to the file in regA, and closes it.
func writeText(t *tape, text string) {
	t.call(unix.SYS_WRITE, 0, t.str(text), uintptr(len(text))).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
}
