//go:build linux

package notify

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notif is struct seccomp_notif with its struct seccomp_data.
type notif struct {
	id    uint64
	pid   uint32 // of the thread, in the reader's PID namespace
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// reply is struct seccomp_notif_resp.
type reply struct {
	id    uint64
	val   int64
	errno int32 // negative
	flags uint32
}

// injection is struct seccomp_notif_addfd.
type injection struct {
	id         uint64
	flags      uint32
	srcfd      uint32
	newfd      uint32
	newfdFlags uint32
}

// notifSizes says how large the kernel's structures are. A kernel with larger ones would write past ours.
func notifSizes() (ok bool, errno syscall.Errno) {
	var sizes [3]uint16
	_, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	return uintptr(sizes[0]) == unsafe.Sizeof(notif{}) && uintptr(sizes[1]) == unsafe.Sizeof(reply{}), errno
}

func receive(fd int, n *notif) syscall.Errno {
	*n = notif{}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(n)))
	return e
}

// send answers. A signal may interrupt it before it has: an answer that is lost leaves its caller waiting for ever.
func send(fd int, r *reply) syscall.Errno {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(r)))
		if e != unix.EINTR {
			return e
		}
	}
}

// idValid says whether the caller still waits. Whatever was read from /proc/PID before it returns true
// was the caller's. A signal may interrupt the question, which says nothing of the caller: one that was taken for gone
// would wait for ever.
func idValid(fd int, id uint64) bool {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_ID_VALID,
			uintptr(unsafe.Pointer(&id)))
		if e != unix.EINTR {
			return e == 0
		}
	}
}

// inject puts a descriptor into the table of a process that waits, and returns the number that it has there. No signal
// reaches it meanwhile, and Go's runtime sends itself many: where one interrupts the call the kernel takes the
// descriptor back, and with SECCOMP_ADDFD_FLAG_SEND lets the caller go on all the same, as if open had returned 0
// (seccomp_notify_addfd in kernel/seccomp.c, up to 6.18). SIGSTOP and the freezer cannot be kept off: one that comes in
// the microseconds until the caller has the descriptor does that still. With two calls it would not, and each open
// would wait twice.
func inject(fd int, a *injection) (uintptr, syscall.Errno) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all, before := ^uint64(0), uint64(0)
	mask := func(how int, set, old *uint64) {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, uintptr(how), uintptr(unsafe.Pointer(set)),
			uintptr(unsafe.Pointer(old)), unsafe.Sizeof(all), 0, 0)
	}
	mask(unix.SIG_BLOCK, &all, &before)
	n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_ADDFD, uintptr(unsafe.Pointer(a)))
	mask(unix.SIG_SETMASK, &before, nil)
	return n, e
}

func setFlags(fd int, flags uintptr) syscall.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags)
	return e
}

// readMemory copies from another process without stopping it.
func readMemory(pid uint32, addr uint64, dst []byte) (int, syscall.Errno) {
	if len(dst) == 0 {
		return 0, 0
	}
	local := unix.Iovec{Base: &dst[0], Len: uint64(len(dst))}
	remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(dst)}
	n, _, e := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote)), 1, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// readTwo fills two buffers from another process, or says that it did not.
func readTwo(pid uint32, at [2]uint64, dst [2][]byte) bool {
	var local [2]unix.Iovec
	var remote [2]unix.RemoteIovec
	for i, d := range dst {
		local[i] = unix.Iovec{Base: &d[0], Len: uint64(len(d))}
		remote[i] = unix.RemoteIovec{Base: uintptr(at[i]), Len: len(d)}
	}
	n, _, e := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(pid), uintptr(unsafe.Pointer(&local)), 2,
		uintptr(unsafe.Pointer(&remote)), 2, 0)
	return e == 0 && int(n) == len(dst[0])+len(dst[1])
}

// openPath is openat2(2) for a path that ends in a NUL byte already, so that the loop allocates nothing.
func openPath(dir int, pathNUL []byte, flags, resolve uint64) (int, syscall.Errno) {
	how := unix.OpenHow{Flags: flags, Resolve: resolve}
	fd, _, e := unix.Syscall6(unix.SYS_OPENAT2, uintptr(dir), uintptr(unsafe.Pointer(&pathNUL[0])),
		uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow, 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(fd), 0
}

// readLink is readlink(2) for a path that ends in a NUL byte already.
func readLink(pathNUL, dst []byte) (int, syscall.Errno) {
	at := unix.AT_FDCWD
	n, _, e := unix.Syscall6(unix.SYS_READLINKAT, uintptr(at), uintptr(unsafe.Pointer(&pathNUL[0])),
		uintptr(unsafe.Pointer(&dst[0])), uintptr(len(dst)), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// connectTo is connect(2) with an address as the caller wrote it, byte for byte.
func connectTo(fd int, addr []byte) syscall.Errno {
	var p unsafe.Pointer
	if len(addr) > 0 {
		p = unsafe.Pointer(&addr[0])
	}
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(p), uintptr(len(addr)))
	return e
}

// boundFile asks a unix socket for an O_PATH descriptor of the file it is bound to (SIOCUNIXFILE).
func boundFile(sock int) (int, syscall.Errno) {
	const siocunixfile = 0x89e0
	fd, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(sock), siocunixfile, 0)
	if e != 0 {
		return -1, e
	}
	return int(fd), 0
}

// The kernel's own layouts: x/sys generates these types from the kernel's headers for each architecture.
func statBytes(st *unix.Stat_t) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(st)), unsafe.Sizeof(*st))
}

func statxBytes(st *unix.Statx_t) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(st)), unsafe.Sizeof(*st))
}

func statfsBytes(st *unix.Statfs_t) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(st)), unsafe.Sizeof(*st))
}
