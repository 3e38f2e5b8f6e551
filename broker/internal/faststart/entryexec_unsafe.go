//go:build linux

package faststart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/handover"
	"sbx.example/sbx/broker/plan"
)

// execClient is the client of `sbx exec` before the Go runtime starts, which takes longer than the program.
type execClient struct {
	sock  int32
	sigfd int32
	from  uintptr // where in begins: what stands before was read
	got   uintptr // where in ends
	put   uintptr // bytes of line
	pid   uintptr // of the program, 0 before it has run for a moment
	over  bool    // line was too long, or holds what only Go can spell
	asked bool    // the program runs, and a question waits
	st    unix.Stat_t
	poll  [2]unix.PollFd
	wait  unix.Timespec
	set   uint64 // signals
	info  [128]byte
	addr  unix.RawSockaddrUnix
	iov   [2]uintptr // struct iovec
	hdr   msgHeader
	cmsg  [32]byte
	path  [4096]byte
	in    [64 << 10]byte
	line  [64 << 10]byte
}

// msgHeader is struct msghdr without pointers of Go's: there is no runtime yet that would want to hear of them.
type msgHeader struct {
	name, nameLen, iov, iovLen, control, controlLen, flags uintptr
}

// enterExec asks for the program of `sbx exec SID [--] CMD...`, passes signals on and exits with its status, if the
// descriptors can be handed in as they are. Everything else is left to the runtime, with the connection and what came
// on it if the program was asked for already: then it has ended, or the session has, or a question waits, and there is
// something to be said about it.
//
//go:nosplit
//go:norace
func enterExec(argc uintptr, argv unsafe.Pointer) {
	if prepareExec(&entry.exec, argc, argv) {
		asked := sendExec(&entry.exec)
		if asked {
			awaitExec(&entry.exec)
		}
		leaveExec(&entry.exec, asked)
	}
}

// prepareExec connects and makes the message. Nobody has heard of the program yet.
//
//go:noinline
//go:nosplit
//go:norace
func prepareExec(x *execClient, argc uintptr, argv unsafe.Pointer) bool {
	cmd := uintptr(3)
	if isArg(argv, cmd, "--") {
		cmd++
	}
	if cmd >= argc || byteOf(argv, cmd, 0) == '-' || !plan.IsSession(textOf(*(*unsafe.Pointer)(unsafe.Add(argv, 8*2)))) ||
		!passable(x) || !findRoot(x, argc, argv) {
		return false
	}
	dir := openPrivate(x, argv)
	if dir < 0 {
		return false
	}
	x.sock = connectExec(x, uintptr(dir))
	syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(dir), 0, 0)
	if x.sock <= 2 {
		x.sock = 0
		return false
	}
	x.add(`{"type":"cmd.exec","fds":3,"argv":[`)
	for i := cmd; i < argc; i++ {
		if i > cmd {
			x.put1(',')
		}
		x.quote(*(*unsafe.Pointer)(unsafe.Add(argv, 8*i)))
	}
	x.add("]}\n")
	x.set = 1<<(unix.SIGINT-1) | 1<<(unix.SIGTERM-1) | 1<<(unix.SIGHUP-1) | 1<<(unix.SIGQUIT-1) | 1<<(unix.SIGUSR1-1) |
		1<<(unix.SIGUSR2-1) | 1<<(unix.SIGTSTP-1)
	fd, _, e := syscall.RawSyscall6(unix.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&x.set)), 8, unix.SFD_CLOEXEC,
		0, 0)
	if e != 0 || x.over {
		leaveExec(x, false)
		return false
	}
	x.sigfd = int32(fd)
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, uintptr(unsafe.Pointer(&x.set)), 0, 8, 0, 0)
	passFiles(x)
	return true
}

// leaveExec lets the runtime go on, with the connection if something was asked on it.
//
//go:noinline
//go:nosplit
//go:norace
func leaveExec(x *execClient, asked bool) {
	if x.sigfd > 0 {
		if !x.asked || x.pid == 0 { // else they wait for Go, which passes them on
			syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_UNBLOCK, uintptr(unsafe.Pointer(&x.set)), 0, 8, 0, 0)
		}
		syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(x.sigfd), 0, 0)
	}
	if !asked {
		syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(x.sock), 0, 0)
		x.sock = 0
	}
}

// byteOf is byte k of argument i, which has at least k bytes.
//
//go:nosplit
//go:norace
func byteOf(argv unsafe.Pointer, i, k uintptr) byte {
	return *(*byte)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Add(argv, 8*i)), k))
}

// passable says whether descriptors 0 to 2 can be handed into a sandbox as they are. The broker looks again.
//
//go:noinline
//go:nosplit
//go:norace
func passable(x *execClient) bool {
	for i := uintptr(0); i < 3; i++ {
		_, _, e := syscall.RawSyscall(syscall.SYS_FSTAT, i, uintptr(unsafe.Pointer(&x.st)), 0)
		flags, _, ef := syscall.RawSyscall(syscall.SYS_FCNTL, i, unix.F_GETFL, 0)
		if e != 0 || ef != 0 || handover.Lent(i, &x.st) || !handover.Passes(&x.st, flags) {
			return false
		}
	}
	return true
}

// findRoot finds the place of sockets; the path is in x.path, terminated.
//
//go:noinline
//go:nosplit
//go:norace
func findRoot(x *execClient, argc uintptr, argv unsafe.Pointer) bool {
	envp := unsafe.Add(argv, 8*(argc+1))
	runtimeDir, usable := textOf(variable(envp, "XDG_RUNTIME_DIR=")), false
	if len(runtimeDir) > 0 && runtimeDir[0] == '/' && join(x, runtimeDir, "") {
		_, _, e := syscall.RawSyscall6(unix.SYS_NEWFSTATAT, cwd, uintptr(unsafe.Pointer(&x.path)),
			uintptr(unsafe.Pointer(&x.st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		uid, _, _ := syscall.RawSyscall(syscall.SYS_GETEUID, 0, 0, 0)
		usable = e == 0 && (x.st.Mode&unix.S_IFMT != unix.S_IFDIR || uintptr(x.st.Uid) == uid)
	}
	base, rest := control.RootParts(runtimeDir, usable, textOf(variable(envp, "XDG_STATE_HOME=")),
		textOf(variable(envp, "HOME=")))
	return len(base) > 0 && base[0] == '/' && join(x, base, rest)
}

const cwd = ^uintptr(99) // AT_FDCWD

// variable is the value of the first variable that begins with name, which ends in "=".
//
//go:nosplit
//go:norace
func variable(envp unsafe.Pointer, name string) unsafe.Pointer {
	for ; ; envp = unsafe.Add(envp, 8) {
		p := *(*unsafe.Pointer)(envp)
		if p == nil {
			return nil
		}
		k := 0
		for k < len(name) && *(*byte)(unsafe.Add(p, k)) == name[k] {
			k++
		}
		if k == len(name) {
			return unsafe.Add(p, k)
		}
	}
}

// textOf is the string at p, which ends in NUL; "" where there is none.
//
//go:nosplit
//go:norace
func textOf(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return unsafe.String((*byte)(p), n)
}

// join makes x.path of a directory and what is below it.
//
//go:nosplit
//go:norace
func join(x *execClient, dir, rest string) bool {
	if len(dir) >= len(x.path)-64 {
		return false
	}
	n := 0
	for i := 0; i < len(dir); i++ {
		x.path[n&4095] = dir[i]
		n++
	}
	if rest != "" {
		x.path[n&4095] = '/'
		n++
	}
	for i := 0; i < len(rest); i++ {
		x.path[n&4095] = rest[i]
		n++
	}
	x.path[n&4095] = 0
	return true
}

// openPrivate opens the session's folder, which nobody but its owner, this user, may be able to enter.
//
//go:noinline
//go:nosplit
//go:norace
func openPrivate(x *execClient, argv unsafe.Pointer) int32 {
	top := openDir(x, cwd, uintptr(unsafe.Pointer(&x.path)))
	if top < 0 {
		return -1
	}
	dir := openDir(x, uintptr(top), *(*uintptr)(unsafe.Add(argv, 8*2)))
	syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(top), 0, 0)
	return dir
}

//go:noinline
//go:nosplit
//go:norace
func openDir(x *execClient, at, name uintptr) int32 {
	fd, _, e := syscall.RawSyscall6(syscall.SYS_OPENAT, at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|
		unix.O_CLOEXEC, 0, 0, 0)
	if e != 0 {
		return -1
	}
	uid, _, _ := syscall.RawSyscall(syscall.SYS_GETEUID, 0, 0, 0)
	_, _, e = syscall.RawSyscall(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&x.st)), 0)
	if e != 0 || uintptr(x.st.Uid) != uid || x.st.Mode&0o077 != 0 {
		syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
		return -1
	}
	return int32(fd)
}

// connectExec connects to the socket in dir, by way of the descriptor: see control.sockName.
//
//go:noinline
//go:nosplit
//go:norace
func connectExec(x *execClient, dir uintptr) int32 {
	x.addr.Family = unix.AF_UNIX
	n := 0
	for _, part := range [2]string{"/proc/self/fd/", "/sock"} {
		for i := 0; i < len(part); i++ {
			x.addr.Path[n&63] = int8(part[i])
			n++
		}
		if part[1] == 's' {
			break
		}
		for div := uintptr(1000); div > 0; div /= 10 {
			if dir >= div || div == 1 {
				x.addr.Path[n&63] = int8('0' + dir/div%10)
				n++
			}
		}
	}
	fd, _, e := syscall.RawSyscall(syscall.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if e != 0 || dir > 9999 {
		return -1
	}
	_, _, e = syscall.RawSyscall(syscall.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&x.addr)), unsafe.Sizeof(x.addr))
	if e != 0 {
		syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
		return -1
	}
	return int32(fd)
}

//go:nosplit
//go:norace
func (x *execClient) put1(c byte) {
	if x.put >= uintptr(len(x.line))-1 { // a line of 64 KiB with its newline is too long
		x.over = true
		return
	}
	x.line[x.put&(64<<10-1)] = c
	x.put++
}

//go:nosplit
//go:norace
func (x *execClient) add(s string) {
	for i := 0; i < len(s); i++ {
		x.put1(s[i])
	}
}

// quote adds a string of JSON. Bytes that are not ASCII are left to the runtime.
//
//go:nosplit
//go:norace
func (x *execClient) quote(p unsafe.Pointer) {
	x.put1('"')
	for ; !x.over; p = unsafe.Add(p, 1) {
		c := *(*byte)(p)
		switch {
		case c == 0:
			x.put1('"')
			return
		case c == '"' || c == '\\':
			x.put1('\\')
			x.put1(c)
		case c < ' ':
			x.add(`\u00`)
			x.put1('0' + c>>4)
			if c &= 15; c < 10 {
				x.put1('0' + c)
			} else {
				x.put1('a' + c - 10)
			}
		case c >= 0x7f:
			x.over = true
		default:
			x.put1(c)
		}
	}
}

// passFiles has the descriptors go along with the next message.
//
//go:noinline
//go:nosplit
//go:norace
func passFiles(x *execClient) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&x.cmsg))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SCM_RIGHTS
	h.SetLen(int(unsafe.Sizeof(*h)) + 12)
	for i := uintptr(0); i < 3; i++ {
		*(*int32)(unsafe.Add(unsafe.Pointer(&x.cmsg), unsafe.Sizeof(*h)+4*i)) = int32(i)
	}
	x.hdr.control, x.hdr.controlLen = uintptr(unsafe.Pointer(&x.cmsg)), unsafe.Sizeof(*h)+16
}

// sendExec sends what was put. It says whether any of it is on its way: then there is no other client to take this
// one's place.
//
//go:noinline
//go:nosplit
//go:norace
func sendExec(x *execClient) bool {
	x.hdr.iov, x.hdr.iovLen = uintptr(unsafe.Pointer(&x.iov)), 1
	for sent := uintptr(0); sent < x.put; {
		x.iov = [2]uintptr{uintptr(unsafe.Pointer(&x.line)) + sent, x.put - sent}
		n, _, e := syscall.RawSyscall(syscall.SYS_SENDMSG, uintptr(x.sock), uintptr(unsafe.Pointer(&x.hdr)),
			unix.MSG_NOSIGNAL)
		if e != 0 && e != unix.EINTR {
			return sent > 0
		}
		if e == 0 {
			sent += n
			x.hdr.control, x.hdr.controlLen = 0, 0
		}
	}
	return true
}

// Exec returns the connection on which the program of `sbx exec` was asked for when this process started, what came on
// it and has to be read, and the program's pid inside, if that came already; 0 if there is none.
func Exec() (fd, pid int, got []byte) {
	x := &entry.exec
	fd, x.sock = int(x.sock), 0
	return fd, int(x.pid), x.in[x.from:x.got:x.got]
}
