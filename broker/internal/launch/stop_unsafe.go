package launch

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// action is struct sigaction as the kernel has it (amd64 and arm64: handler, flags, restorer, mask).
type action [4]uintptr

// byDefault has the kernel do by itself what sig does, until the result is called. os/signal cannot bring that about for a
// signal that it has caught once: Reset leaves the runtime's handler in place, which then does nothing.
func byDefault(sig syscall.Signal) (restore func()) {
	var plain, old action
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&plain)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	return func() {
		if errno == 0 {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
		}
	}
}
