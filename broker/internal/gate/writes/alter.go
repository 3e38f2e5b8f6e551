//go:build linux

package writes

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// alter changes the attributes or the length of what a call names, or says whether it could be written.
func (j *job) alter() bool {
	if j.d.kind == kindAccess && j.call.Arg(int(j.d.arg))&^7 != 0 {
		return j.elsewhere()
	}
	if j.d.op == "truncate" && int64(j.call.Arg(int(j.d.arg))) < 0 {
		return j.answer(unix.EINVAL) // whatever is named
	}
	n, exact := j.altered()
	for range maxLinks {
		if n == nil {
			return j.elsewhere()
		}
		follow := j.followed() || n.slash
		fd, e := openAt(n.root.fd, nulled(n.rel), unix.O_PATH|unix.O_NOFOLLOW, 0)
		if e == 0 && exact != nil && !exact.is(fd) { // it was moved or removed since it was opened
			unix.Close(fd)
			j.kernel()
			return true
		}
		if e == 0 && !(follow && isLink(fd)) {
			if n.slash && !isDirectory(fd) {
				unix.Close(fd)
				return j.answer(unix.ENOTDIR)
			}
			done := j.judged(n, fd)
			unix.Close(fd)
			return done
		}
		if e == 0 {
			unix.Close(fd)
			e = unix.ELOOP
		}
		if e == unix.EXDEV { // something is mounted there: what guards a name
			return j.refuse(n, mounted(), unix.EROFS)
		}
		if e != unix.ELOOP {
			return j.answer(e)
		}
		where := j.straight(n.abs(), n.slash, follow)
		if where != nil && where.rel == n.rel {
			return j.answer(e)
		}
		n = where
	}
	return j.answer(unix.ELOOP)
}

func (j *job) followed() bool { return j.d.followed(j.flags) }

func isLink(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

func isDirectory(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && typeOf(st) == unix.S_IFDIR
}

// object is the identity of what a descriptor of the caller's is.
type object struct{ dev, ino uint64 }

func (o *object) is(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && *o == object{uint64(st.Dev), st.Ino}
}

// altered is the name of what is to be altered. For a descriptor it is the name that it has now, with what must be
// found there.
func (j *job) altered() (*name, *object) {
	if j.d.path >= 0 {
		if n := j.named(j.d.dir, j.d.path, j.mem[0][:], j.followed()); n != nil {
			return n, nil
		}
		size, e := j.call.Path(int(j.d.path), j.mem[0][:])
		empty := e == 0 && size == 1 && j.flags&unix.AT_EMPTY_PATH != 0 || e == unix.EFAULT &&
			j.call.Arg(int(j.d.path)) == 0 && j.d.op == "utimens"
		if !empty {
			return nil, nil
		}
	}
	fd := strconv.Itoa(int(int32(uint32(j.call.Arg(int(max(j.d.dir, 0)))))))
	number := "fd/" + fd + "\x00"
	if j.handed(number) || j.d.path < 0 && j.callers.isPath(j.call, fd) {
		return nil, nil
	}
	p := j.links(number)
	if p == "" || strings.HasSuffix(p, " (deleted)") {
		return nil, nil
	}
	n := j.leads(p, false)
	var st unix.Stat_t
	if n == nil || j.callers.stat(j.call, nulled(number), &st) != 0 {
		return nil, nil
	}
	return n, &object{uint64(st.Dev), st.Ino}
}

// handed says whether a descriptor of the caller's is of the writable mount: it was judged when it was opened, and the
// kernel does the rest.
func (j *job) handed(number string) bool {
	if j.InPlace != nil { // all of the file system is one mount
		return false
	}
	mount, ok := j.callers.mount(j.call, number[:len(number)-1])
	return ok && slices.ContainsFunc(j.roots, func(r root) bool { return r.mount == mount })
}

// judged asks about an object and does what the call wanted.
func (j *job) judged(n *name, fd int) bool {
	v := n.root.judge.of(n)
	no := mayWrite(v)
	if j.d.op == "chmod" && v.Action.Checked() && j.keepsOut(fd) { // git tries which modes the file system keeps
		no = 0
	}
	if n.path() == "." { // the granted directory may be touched, not given away
		if no = 0; j.d.op == "chmod" || j.d.op == "chown" {
			no = unix.EROFS
		}
	}
	if j.d.kind == kindAccess {
		// What may be read the kernel knows better: something may cover it.
		if no != 0 || j.InPlace == nil && j.call.Arg(int(j.d.arg))&unix.W_OK == 0 {
			j.pass()
			return true
		}
		flags := uintptr(j.flags&unix.AT_EACCESS | unix.AT_EMPTY_PATH)
		return j.answer(at1(unix.SYS_FACCESSAT2, fd, nulled("\x00"), uintptr(j.call.Arg(int(j.d.arg))), flags, 0))
	}
	if no != 0 {
		return j.refuse(n, v, no)
	}
	if j.setsGroup() && !isDirectory(fd) {
		return j.answer(unix.EPERM)
	}
	if e := n.root.judge.shown(n, fd); e != 0 {
		return j.answer(e)
	}
	if j.d.op == "truncate" {
		j.witness(n)
	}
	keep := j.keeper().Keeping(fd, v.Secret)
	e := j.does(fd)
	keep()
	return j.answer(e)
}

// keepsOut says whether a file is one whose new mode lets nobody else write it.
func (j *job) keepsOut(fd int) bool {
	var st unix.Stat_t
	next := uint32(j.call.Arg(int(j.d.arg))) & 0o777
	return unix.Fstat(fd, &st) == nil && typeOf(st) == unix.S_IFREG && guard.ConfigMode(st.Mode, next) == next
}

// does changes the object that an O_PATH descriptor is.
func (j *job) does(fd int) syscall.Errno {
	arg := int(j.d.arg)
	value := j.call.Arg(arg)
	itself := nulled("\x00")
	switch j.d.op {
	case "truncate":
		return truncate(nulled(ownFd(fd)), int64(value))
	case "chmod":
		e := at1(sysFchmodat2, fd, itself, uintptr(uint32(value)), unix.AT_EMPTY_PATH, 0)
		if e == unix.ENOSYS || e == unix.EPERM { // before 6.6, or kept from this process
			e = at1(unix.SYS_FCHMODAT, unix.AT_FDCWD, nulled(ownFd(fd)), uintptr(uint32(value)), 0, 0)
		}
		return e
	case "chown":
		uid, ok1 := outside(uint32(value), j.InsideUID, j.OutsideUID)
		gid, ok2 := outside(uint32(j.call.Arg(arg+1)), j.InsideGID, j.OutsideGID)
		if !ok1 || !ok2 {
			return unix.EINVAL
		}
		return at1(unix.SYS_FCHOWNAT, fd, itself, uintptr(uid), uintptr(gid), unix.AT_EMPTY_PATH)
	case "utime", "utimes", "utimens":
		times, e := j.times()
		if e != 0 {
			return e
		}
		return timesAt(fd, itself, times, unix.AT_EMPTY_PATH)
	case "setxattr":
		return j.setXattr(nulled(ownFd(fd)))
	case "removexattr":
		size, e := j.call.Path(arg, j.mem[1][:256])
		if e != 0 {
			return e
		}
		return removeXattr(nulled(ownFd(fd)), j.mem[1][:size])
	}
	return unix.EROFS
}

// outside translates an id that exists inside. All bits set is none.
func outside(id, inside, out uint32) (uint32, bool) {
	switch id {
	case inside:
		return out, true
	case ^uint32(0):
		return id, true
	}
	return 0, false
}

// times copies the two moments of a call, once. nil is now.
func (j *job) times() (*[2]unix.Timespec, syscall.Errno) {
	if j.call.Arg(int(j.d.arg)) == 0 {
		return nil, 0
	}
	b := j.mem[1][:32]
	if j.d.op == "utime" {
		b = b[:16]
	}
	if e := j.call.Memory(int(j.d.arg), b); e != 0 {
		return nil, e
	}
	word := func(i int) int64 { return int64(binary.NativeEndian.Uint64(b[8*i:])) }
	switch j.d.op {
	case "utime":
		return &[2]unix.Timespec{{Sec: word(0)}, {Sec: word(1)}}, 0
	case "utimes":
		if uint64(word(1)) >= 1e6 || uint64(word(3)) >= 1e6 {
			return nil, unix.EINVAL
		}
		return &[2]unix.Timespec{{Sec: word(0), Nsec: word(1) * 1000}, {Sec: word(2), Nsec: word(3) * 1000}}, 0
	}
	return &[2]unix.Timespec{{Sec: word(0), Nsec: word(1)}, {Sec: word(2), Nsec: word(3)}}, 0
}

// maxXattr is XATTR_SIZE_MAX.
const maxXattr = 1 << 16

// setXattr sets an attribute of the user's own. Lists of rights (system.) name ids as they are inside: only those of
// nobody else are set.
func (j *job) setXattr(p []byte) syscall.Errno {
	arg := int(j.d.arg)
	attr := make([]byte, 256)
	size, e := j.call.Path(arg, attr)
	switch {
	case e == unix.ENAMETOOLONG:
		return unix.ERANGE
	case e != 0:
		return e
	}
	attr = attr[:size]
	length := j.call.Arg(arg + 2)
	if length > maxXattr {
		return unix.E2BIG
	}
	value := make([]byte, length)
	if e := j.call.Memory(arg+1, value); e != 0 {
		return e
	}
	if strings.HasPrefix(string(attr), "system.posix_acl_") && !j.translate(value) {
		return unix.EINVAL
	}
	return setXattr(p, attr, value, uintptr(uint32(j.call.Arg(arg+3))))
}

// translate words the ids of a list of rights (struct posix_acl_xattr_header and entries) as they are outside. An id
// that does not exist inside is none that may be named.
func (j *job) translate(acl []byte) bool {
	const user, group = 2, 8 // ACL_USER, ACL_GROUP
	for e := acl[min(4, len(acl)):]; len(e) >= 8; e = e[8:] {
		id := binary.LittleEndian.Uint32(e[4:])
		var ok bool
		switch binary.LittleEndian.Uint16(e) {
		case user:
			id, ok = outside(id, j.InsideUID, j.OutsideUID)
		case group:
			id, ok = outside(id, j.InsideGID, j.OutsideGID)
		default:
			continue
		}
		if !ok || id == ^uint32(0) {
			return false
		}
		binary.LittleEndian.PutUint32(e[4:], id)
	}
	return true
}
