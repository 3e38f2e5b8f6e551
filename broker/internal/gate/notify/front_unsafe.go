package notify

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The front is a thread outside of Go's scheduler that receives the notifications. It lets those calls pass for which one walk inside says
// all there is to say, as look would, and hands every other on, unchanged, through a pipe. What a goroutine pays for each notification
// beside its system calls (the runtime's watchdog, which wakes all the time while threads come and go, and the change of threads after
// each call that took long) it does not pay.

// front is the memory that the thread uses, outside of Go's heap. What it points to lives as long as the server.
type front struct {
	fd, pipe uintptr
	closed   *uint32
	placed   *uint32 // nil: nothing is ever placed
	always   bool    // somebody may place things, and does not say when
	taken    *int64
	arch     uint32
	ready    uint32 // what follows is there
	root     uintptr
	mount    uint64
	served   words
	shown    words // trees in which everything that is missing is missing
	sealed   words // what is never given, and all below it
	known    bool  // sealed is complete
	memory   bool  // the sandbox's root is in memory: a walk that stays on it waits for nothing

	index  [512]uint8 // 1 + index into calls, by number
	calls  [96]call
	n      notif
	r      reply
	end    notif
	empty  byte
	st     unix.Statx_t
	how    unix.OpenHow
	local  span
	remote [2]span
	poll   unix.PollFd
	link   [64]byte
	name   [frontName]byte
	join   [maxPath + frontName]byte
	stack  [32 << 10]byte
}

// span is struct iovec with an address that the collector does not know: a thread that is not its own must write no pointer to memory.
type span struct{ base, size uintptr }

// frontName is how much of a name is read at first; longer ones are for the loop.
const frontName = 512

// words is a list of paths.
type words struct {
	n    int
	ends [512]uint16
	text [32 << 10]byte
}

// add says whether there was room.
func (w *words) add(p string) bool {
	at := 0
	if w.n > 0 {
		at = int(w.ends[w.n-1])
	}
	if w.n == len(w.ends) || at+len(p) > len(w.text) {
		return false
	}
	w.ends[w.n] = uint16(at + copy(w.text[at:], p))
	w.n++
	return true
}

// above says whether one of the paths is p, or above it.
//
//go:nosplit
//go:norace
func (w *words) above(p *byte, size int) bool {
	from := 0
	for i := 0; i < w.n; i++ {
		to := int(w.ends[i])
		if k := to - from; k <= size && (k == size || *at(p, k) == '/') {
			j := 0
			for j < k && w.text[from+j] == *at(p, j) {
				j++
			}
			if j == k {
				return true
			}
		}
		from = to
	}
	return false
}

//go:nosplit
//go:norace
func at(p *byte, i int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), i)) }

// rawFront starts a thread that runs runFront(f).
//
//go:noescape
func rawFront(stack uintptr, f *front) (tid, errno uintptr)

// ended is what the last notification that comes through the pipe says in its flags: there are no more, and nr is why.
const ended = 1 << 31

// runFront is all that the thread does.
//
//lint:ignore U1000 front_*.s calls it
//go:nosplit
//go:norace
func runFront(f *front) {
	for {
		f.n = notif{}
		_, _, e := syscall.RawSyscall(unix.SYS_IOCTL, f.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&f.n)))
		switch e {
		case 0:
			atomic.AddInt64(f.taken, 1)
			if f.passes() {
				f.r = reply{id: f.n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
				for e = unix.EINTR; e == unix.EINTR; { // by a stop of the whole process
					_, _, e = syscall.RawSyscall(unix.SYS_IOCTL, f.fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&f.r)))
				}
			} else {
				f.hand(&f.n)
			}
			continue
		case unix.EINTR:
			continue
		}
		f.poll = unix.PollFd{Fd: int32(f.fd)}
		syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&f.poll)), 1, uintptr(unsafe.Pointer(&f.end)), 0, 0, 0)
		if gone := f.poll.Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0; gone || e != unix.ENOENT {
			f.end.flags = ended
			if !gone {
				f.end.nr = int32(e)
			}
			f.hand(&f.end)
			for {
				syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
			}
		}
	}
}

// hand writes a notification for the loop.
//
//go:nosplit
//go:norace
func (f *front) hand(n *notif) {
	for {
		if _, _, e := syscall.RawSyscall(unix.SYS_WRITE, f.pipe, uintptr(unsafe.Pointer(n)), unsafe.Sizeof(*n)); e != unix.EINTR {
			return
		}
	}
}

// passes says of some of the calls that pass that they do.
//
//go:nosplit
//go:norace
func (f *front) passes() bool {
	n := &f.n
	if atomic.LoadUint32(&f.ready) == 0 || atomic.LoadUint32(f.closed) != 0 || n.arch != f.arch || uint32(n.nr) >= uint32(len(f.index)) || f.index[n.nr] == 0 {
		return false
	}
	c := &f.calls[f.index[n.nr]-1]
	flags := c.flagsOf(n)
	size := f.copyName(n.pid, n.args[c.path&7])
	if size < 2 {
		return size == 1 // "" is the descriptor itself, or an error
	}
	placed := f.always || f.placed != nil && atomic.LoadUint32(f.placed) != 0
	p := &f.name[0]
	if *p != '/' {
		if size = f.joined(n, dirOf(n, c.dir), size, placed); size == 0 {
			return false
		}
		p = &f.join[0]
	}
	dots, plain := dotsIn(p, size)
	if !dots && kernels(p, size) {
		return true
	}
	follow := !c.nofollow(flags)
	open := uint64(unix.O_PATH | unix.O_CLOEXEC)
	if !follow {
		open |= unix.O_NOFOLLOW
	}
	if f.served.n > 0 && f.served.above(p, size-1) {
		return !dots && f.passesServed(p, open|unix.O_NOFOLLOW, follow)
	}
	fd, e := f.open(f.root, p, open, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS|resolveCached)
	switch {
	case e == unix.ENOTDIR:
		return true
	case (e == unix.ENOENT || e == unix.EAGAIN) && plain && (c.look(flags) == sees || c.kind == kindRead || c.kind == kindOpen && flags&unix.O_CREAT == 0):
		return f.missing(p, size, e, placed)
	case e != 0:
		return false
	}
	ok := true
	if placed {
		ok = f.identify(fd, &f.empty, unix.AT_EMPTY_PATH) && f.stays(c.look(flags))
	}
	syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	return ok
}

// missing says whether a name that is found nowhere inside is found nowhere at all, or lies where nothing is asked about. The walk repeats
// itself without links: then the name is what it seems.
//
//go:nosplit
//go:norace
func (f *front) missing(p *byte, size int, e syscall.Errno, placed bool) bool {
	const open, inside = unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS
	if e == unix.ENOENT {
		e = f.without(f.root, p, open, inside|resolveCached)
	}
	if e == unix.EAGAIN && f.memory { // which remembers no name that is not there
		e = f.without(f.root, p, open, inside|unix.RESOLVE_NO_XDEV)
	}
	if e != unix.ENOENT {
		return false
	}
	if !placed && f.shown.above(p, size-1) {
		return true
	}
	here := unix.AT_FDCWD
	return f.known && !f.sealed.above(p, size-1) &&
		f.without(uintptr(here), p, open, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS|resolveCached) == unix.ENOENT
}

// without is open for somebody who wants to hear why it fails.
//
//go:nosplit
//go:norace
func (f *front) without(dir uintptr, p *byte, flags, resolve uint64) syscall.Errno {
	fd, e := f.open(dir, p, flags, resolve)
	if e == 0 {
		syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	}
	return e
}

// passesServed is lookServed.
//
//go:nosplit
//go:norace
func (f *front) passesServed(p *byte, open uint64, follow bool) bool {
	here := unix.AT_FDCWD
	fd, e := f.open(uintptr(here), p, open, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS|resolveCached)
	if e != 0 {
		return e == unix.ENOENT || e == unix.ENOTDIR
	}
	ok := !follow || f.identify(fd, &f.empty, unix.AT_EMPTY_PATH) && f.st.Mode&unix.S_IFMT != unix.S_IFLNK
	syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	return ok
}

// stays is false wherever leads may be true.
//
//go:nosplit
//go:norace
func (f *front) stays(l look) bool {
	if f.st.Mnt_id == f.mount {
		t := f.st.Mode & unix.S_IFMT
		return t != unix.S_IFREG && (t != unix.S_IFDIR || l == sees)
	}
	return l != writes
}

// copyName copies the beginning of a name and returns its size with the NUL, 0 where that is not all of it.
//
//go:nosplit
//go:norace
func (f *front) copyName(pid uint32, addr uint64) int {
	here := uintptr(min(frontName, 4096-addr&4095)) // the page after it need not be there
	f.local = span{uintptr(unsafe.Pointer(&f.name[0])), frontName}
	f.remote = [2]span{{uintptr(addr), here}, {uintptr(addr) + here, frontName - here}}
	got, _, e := syscall.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&f.local)), 1, uintptr(unsafe.Pointer(&f.remote)), 2, 0)
	if e != 0 || got > frontName {
		return 0
	}
	for i := 0; i < int(got); i++ {
		if f.name[i] == 0 {
			return i + 1
		}
	}
	return 0
}

// joined makes an absolute path of a relative one, in f.join. 0: it is for the loop.
//
//go:nosplit
//go:norace
func (f *front) joined(n *notif, dir int32, size int, placed bool) int {
	k := f.number(f.text(0, "/proc/"), n.pid)
	switch {
	case dir == unix.AT_FDCWD:
		f.text(k, "/cwd\x00")
	case dir < 0:
		return 0
	default:
		f.text(f.number(f.text(k, "/fd/"), uint32(dir)), "\x00")
	}
	here := unix.AT_FDCWD
	if placed && (!f.identify(uintptr(here), &f.link[0], 0) || f.st.Mnt_id == f.mount) { // see covered
		return 0
	}
	got, _, e := syscall.RawSyscall6(unix.SYS_READLINKAT, uintptr(here), uintptr(unsafe.Pointer(&f.link[0])), uintptr(unsafe.Pointer(&f.join[0])), maxPath, 0, 0)
	if e != 0 || got == 0 || got >= maxPath || f.join[0] != '/' || f.join[got-1] == ')' { // it may be deleted
		return 0
	}
	if k = int(got); k > 1 {
		f.join[k] = '/'
		k++
	}
	for i := 0; i < size; i++ {
		f.join[k+i] = f.name[i]
	}
	return k + size
}

// text and number write to f.link at k and return where they ended.
//
//go:nosplit
//go:norace
func (f *front) text(k int, s string) int {
	for i := 0; i < len(s); i++ {
		f.link[k+i] = s[i]
	}
	return k + len(s)
}

//go:nosplit
//go:norace
func (f *front) number(k int, v uint32) int {
	digits := 1
	for w := v; w >= 10; w /= 10 {
		digits++
	}
	for i := digits - 1; i >= 0; i-- {
		f.link[k+i] = byte('0' + v%10)
		v /= 10
	}
	return k + digits
}

//go:nosplit
//go:norace
func (f *front) open(dir uintptr, p *byte, flags, resolve uint64) (uintptr, syscall.Errno) {
	f.how = unix.OpenHow{Flags: flags, Resolve: resolve}
	fd, _, e := syscall.RawSyscall6(unix.SYS_OPENAT2, dir, uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&f.how)), unix.SizeofOpenHow, 0, 0)
	return fd, e
}

// identify fills f.st.
//
//go:nosplit
//go:norace
func (f *front) identify(fd uintptr, p *byte, flags uintptr) bool {
	_, _, e := syscall.RawSyscall6(unix.SYS_STATX, fd, uintptr(unsafe.Pointer(p)), flags|unix.AT_STATX_DONT_SYNC,
		unix.STATX_TYPE|unix.STATX_MNT_ID, uintptr(unsafe.Pointer(&f.st)), 0)
	return e == 0
}

// dotsIn says whether a path, whose size includes its NUL, has something like ".." in it, and whether it is
// as cleaned would leave it.
//
//go:nosplit
//go:norace
func dotsIn(p *byte, size int) (dots, plain bool) {
	plain = size < 3 || *at(p, size-2) != '/'
	for i := 0; i+2 < size; i++ {
		if *at(p, i) != '/' {
			continue
		}
		switch *at(p, i+1) {
		case '/':
			plain = false
		case '.':
			switch *at(p, i+2) {
			case '.':
				plain, dots = false, true
			case '/', 0:
				plain = false
			}
		}
	}
	return dots, plain
}

// kernels is kernelFile.
//
//go:nosplit
//go:norace
func kernels(p *byte, size int) bool {
	if size < 5 || *at(p, 0) != '/' {
		return false
	}
	a, b, c := *at(p, 1), *at(p, 2), *at(p, 3)
	end := 4
	switch {
	case a == 'd' && b == 'e' && c == 'v', a == 's' && b == 'y' && c == 's':
	case a == 'p' && b == 'r' && c == 'o' && *at(p, 4) == 'c':
		end = 5
	default:
		return false
	}
	return *at(p, end) == '/' || *at(p, end) == 0
}
