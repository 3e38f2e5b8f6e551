//go:build linux

package writes

import (
	"cmp"
	"encoding/binary"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxAddress is sizeof(struct sockaddr_un).
const maxAddress = 110

// bind gives a unix socket its name in one of the trees.
func (j *job) bind() bool {
	size := uint32(j.call.Arg(2))
	if size <= 2 || size > maxAddress {
		return j.elsewhere()
	}
	addr := j.mem[0][:size]
	if j.call.Memory(1, addr) != 0 || binary.NativeEndian.Uint16(addr) != unix.AF_UNIX || addr[2] == 0 {
		return j.elsewhere()
	}
	said := unix.ByteSliceToString(addr[2:])
	p := said
	if p[0] != '/' {
		base := j.base(none)
		if base == "" {
			return j.elsewhere()
		}
		p = below(base, p)
	}
	n := j.leads(p, false)
	return j.makeAt(n, func(n *name) syscall.Errno { return j.bindAt(n, said) })
}

// makeAt has a name made that may be, or where it leads: try says ELOOP where a link is in its way.
func (j *job) makeAt(n *name, try func(*name) syscall.Errno) bool {
	for range maxLinks {
		if n == nil {
			return j.elsewhere()
		}
		v := n.root.judge.of(n)
		no := n.root.judge.mayMake(n, v, byOther)
		e := syscall.Errno(unix.ELOOP)
		if no == 0 {
			e = j.making(n, try)
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

func (j *job) making(n *name, try func(*name) syscall.Errno) syscall.Errno {
	done := j.turn(n)
	if done == nil {
		return unix.EAGAIN
	}
	defer done()
	return try(n)
}

// plain keeps a name from being taken for an abstract one.
func plain(name string) string {
	if name[0] == '@' {
		return "./" + name
	}
	return name
}

// bindAt binds a duplicate of the caller's socket. The working directory is this thread's own, see Begin.
func (j *job) bindAt(n *name, said string) syscall.Errno {
	dir, base, e := n.parent()
	if e != 0 {
		return e
	}
	defer n.closeParent(dir)
	var st unix.Stat_t
	if n.slash && statAt(dir, nulled(single(base)+"\x00"), &st, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
		return unix.ENOENT // only a directory can be there, and that is not made
	}
	sock, e := j.call.Duplicate(int32(uint32(j.call.Arg(0))))
	if e != 0 {
		return e
	}
	defer unix.Close(sock)
	domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX {
		return unix.EINVAL
	}
	j.takeMask()
	j.Making.Lock()
	defer j.Making.Unlock()
	from, address := j.address(said, dir, single(base))
	if from != dir {
		err = bindBeneath(n.root.fd, from, sock, address, int(j.mask))
		unix.Close(from)
	}
	if from == dir || err == errNoRule {
		err = bindIn(dir, sock, single(base))
		_ = unix.Fchdir(n.root.fd)
	}
	if err != nil {
		return errnoOf(err)
	}
	j.Sockets.Add(idOf(dir, single(base)))
	return 0
}

// bindIn gives a socket a name in a directory, which becomes the thread's own.
func bindIn(dir, sock int, name string) error {
	if err := unix.Fchdir(dir); err != nil {
		return err
	}
	return unix.Bind(sock, &unix.SockaddrUnix{Name: plain(name)})
}

// address is what a socket is bound to, and the directory from which that leads to its name. The socket keeps the
// address, and getsockname(2) tells it, so it is what the program said: but only if no link is on the way and it leads
// here to the directory that was judged. Otherwise it is the last part alone, in that directory.
func (j *job) address(said string, dir int, base string) (from int, address string) {
	i := strings.LastIndexByte(said, '/')
	if i < 0 || said[i+1:] != base {
		return dir, base
	}
	above, resolve, start := said[:i+1], uint64(unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS), "/"
	if said[0] != '/' {
		if start = j.base(none); start == "" {
			return dir, base
		}
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: resolve}
	from, err := unix.Openat2(unix.AT_FDCWD, start, &how)
	if err != nil {
		return dir, base
	}
	up, err := unix.Openat2(from, above, &how)
	if err == nil {
		leads := idOf(up, "") == idOf(dir, "")
		unix.Close(up)
		if leads {
			return from, said
		}
	}
	unix.Close(from)
	return dir, base
}
