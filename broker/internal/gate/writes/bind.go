package writes

import (
	"cmp"
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxAddress is sizeof(struct sockaddr_un).
const maxAddress = 110

// bind gives a unix socket its name in one of the trees. The socket then knows the last part of it alone: to name the directory to the
// kernel by a path would be to follow whatever stands there by then.
func (j *job) bind() bool {
	size := uint32(j.call.Arg(2))
	if size <= 2 || size > maxAddress {
		return j.elsewhere()
	}
	addr := j.mem[0][:size]
	if j.call.Memory(1, addr) != 0 || binary.NativeEndian.Uint16(addr) != unix.AF_UNIX || addr[2] == 0 {
		return j.elsewhere()
	}
	p := unix.ByteSliceToString(addr[2:])
	if p[0] != '/' {
		base := j.base(none)
		if base == "" {
			return j.elsewhere()
		}
		p = below(base, p)
	}
	n := j.leads(p, false)
	for range maxLinks {
		if n == nil {
			return j.elsewhere()
		}
		v := n.root.judge.of(n)
		no := n.root.judge.mayMake(n, v, byOther)
		e := syscall.Errno(unix.ELOOP)
		if no == 0 {
			e = j.bindAt(n)
		}
		if e != unix.ELOOP {
			return j.answer(e)
		}
		where := j.straight(n.abs(), n.slash, false)
		if where != nil && where.rel == n.rel {
			return j.refuse(n, v, cmp.Or(no, unix.EROFS))
		}
		n = where
	}
	return j.answer(unix.ELOOP)
}

// plain keeps a name from being taken for an abstract one.
func plain(name string) string {
	if name[0] == '@' {
		return "./" + name
	}
	return name
}

// bindAt binds a duplicate of the caller's socket. The working directory is this thread's own, see Begin.
func (j *job) bindAt(n *name) syscall.Errno {
	dir, base, e := n.parent()
	if e != 0 {
		return e
	}
	defer n.closeParent(dir)
	sock, e := j.call.Duplicate(int32(uint32(j.call.Arg(0))))
	if e != 0 {
		return e
	}
	defer unix.Close(sock)
	domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX {
		return unix.EINVAL
	}
	if err := unix.Fchdir(dir); err != nil {
		return err.(syscall.Errno)
	}
	j.takeMask()
	j.Making.Lock()
	defer j.Making.Unlock()
	err = unix.Bind(sock, &unix.SockaddrUnix{Name: plain(base[:len(base)-1])})
	_ = unix.Fchdir(n.root.fd)
	if err == nil {
		j.Sockets.Add(idOf(dir, base[:len(base)-1]))
	}
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return 0
}
