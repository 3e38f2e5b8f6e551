//go:build linux

package resources

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// userfaultfd(2): what x/sys has no names for.
const (
	uffdUserModeOnly = 1
	uffdWpAsync      = 1 << 15
	uffdModeWP       = 1 << 1
	uffdAPI          = 0xaa
	uffdioAPI        = 0xc018aa3f
	uffdioRegister   = 0xc020aa00
)

// Sparse has the kernel map the pages of these ranges one by one as they are touched. By default one that is touched
// brings the fifteen beside it, of which a broker needs few. With asynchronous write protection, which nothing here
// ever uses, that is switched off; nobody is told of any fault. It holds as long as the descriptor is open, which is
// for good. A kernel without it (before 6.7) goes on as it was.
func Sparse(ranges [][2]uintptr) {
	fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if e != 0 {
		return
	}
	api := [3]uint64{uffdAPI, uffdWpAsync}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, fd, uffdioAPI, uintptr(unsafe.Pointer(&api))); e != 0 {
		unix.Close(int(fd))
		return
	}
	for _, r := range ranges {
		area := [4]uint64{uint64(r[0]), uint64(r[1] - r[0]), uffdModeWP}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, uffdioRegister, uintptr(unsafe.Pointer(&area)))
	}
}
