//go:build linux

package notify

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func rawOpen(dir int, path []byte) (uintptr, uintptr, syscall.Errno) {
	return unix.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(unsafe.SliceData(path))), unix.O_RDONLY|
		unix.O_CLOEXEC, 0, 0, 0)
}

func rawStat(p *byte, st *unix.Stat_t) syscall.Errno {
	at := unix.AT_FDCWD
	_, _, e := unix.RawSyscall6(unix.SYS_STATX, uintptr(at), uintptr(unsafe.Pointer(p)), 0, unix.STATX_BASIC_STATS,
		uintptr(unsafe.Pointer(new(unix.Statx_t))), 0)
	return e
}

func rawConnect(fd int, addr []byte) syscall.Errno { return connectTo(fd, addr) }
