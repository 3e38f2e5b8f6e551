//go:build linux

package writes

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// beneath is how every name in a tree is walked: no link, no other mount, and nothing outside.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// sysFchmodat2 is the same on all architectures.
const sysFchmodat2 = 452

// The calls below take names that end in a NUL byte already, so that nothing is allocated.

func openAt(dir int, name []byte, flags uint64, mode uint32) (int, syscall.Errno) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: uint64(mode), Resolve: beneath}
	fd, _, e := unix.Syscall6(unix.SYS_OPENAT2, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
		uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow, 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(fd), 0
}

func readLinkAt(dir int, name, dst []byte) (int, syscall.Errno) {
	n, _, e := unix.Syscall6(unix.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
		uintptr(unsafe.Pointer(&dst[0])), uintptr(len(dst)), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

func statAt(dir int, name []byte, st *unix.Stat_t, flags int) syscall.Errno {
	_, _, e := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
		uintptr(unsafe.Pointer(st)), uintptr(flags), 0, 0)
	return e
}

// at1 is a call with a directory, a name and up to three plain arguments.
func at1(nr uintptr, dir int, name []byte, a, b, c uintptr) syscall.Errno {
	_, _, e := unix.Syscall6(nr, uintptr(dir), uintptr(unsafe.Pointer(&name[0])), a, b, c, 0)
	return e
}

// at2 is a call with two directories and names.
func at2(nr uintptr, dir int, name []byte, dir2 int, name2 []byte, flags uintptr) syscall.Errno {
	_, _, e := unix.Syscall6(nr, uintptr(dir), uintptr(unsafe.Pointer(&name[0])), uintptr(dir2),
		uintptr(unsafe.Pointer(&name2[0])), flags, 0)
	return e
}

func symlinkAt(target []byte, dir int, name []byte) syscall.Errno {
	_, _, e := unix.Syscall(unix.SYS_SYMLINKAT, uintptr(unsafe.Pointer(&target[0])), uintptr(dir),
		uintptr(unsafe.Pointer(&name[0])))
	return e
}

func timesAt(dir int, name []byte, times *[2]unix.Timespec, flags int) syscall.Errno {
	_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
		uintptr(unsafe.Pointer(times)), uintptr(flags), 0, 0)
	return e
}

func setXattr(path, attr, value []byte, flags uintptr) syscall.Errno {
	var p unsafe.Pointer
	if len(value) > 0 {
		p = unsafe.Pointer(&value[0])
	}
	_, _, e := unix.Syscall6(unix.SYS_SETXATTR, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&attr[0])),
		uintptr(p), uintptr(len(value)), flags, 0)
	return e
}

func removeXattr(path, attr []byte) syscall.Errno {
	_, _, e := unix.Syscall(unix.SYS_REMOVEXATTR, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&attr[0])), 0)
	return e
}

func truncate(path []byte, size int64) syscall.Errno {
	_, _, e := unix.Syscall(unix.SYS_TRUNCATE, uintptr(unsafe.Pointer(&path[0])), uintptr(size), 0)
	return e
}

func umask(mask uint32) (old uint32) {
	r, _, _ := unix.Syscall(unix.SYS_UMASK, uintptr(mask), 0, 0)
	return uint32(r)
}

// layCapabilitiesDown leaves this thread no right that the sandbox's user has not.
func layCapabilitiesDown() syscall.Errno {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if _, _, e := unix.RawSyscall(unix.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])),
		0); e != 0 {
		return e
	}
	data[0].Effective, data[1].Effective = 0, 0
	_, _, e := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	return e
}

// nulled is a string that ends in a NUL byte, for calls that only read it.
func nulled(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
