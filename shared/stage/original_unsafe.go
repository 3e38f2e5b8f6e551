package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// original is what this process was started with for the signals that the Go runtime takes for itself, unasked, and swallows or answers with a
// trace of its own: to whoever sends one before there is a program to pass it on to, it is to do what it does to any other process.
type original [3]struct {
	action [4]uintptr // struct sigaction
	known  bool
}

// save reads it before the runtime starts.
//
//go:nosplit
//go:norace
func (o *original) save() {
	for i := range o {
		_, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, originalOf(i), 0, uintptr(unsafe.Pointer(&o[i].action)), 8, 0, 0)
		o[i].known = e == 0
	}
}

// Begin is to be called before anything else: it gives SIGQUIT, SIGUSR1 and SIGUSR2 back to the kernel (package os/signal cannot be told about them
// then, which launch knows).
func Begin() {
	for i := range entry.original {
		if o := &entry.original[i]; o.known {
			_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, originalOf(i), uintptr(unsafe.Pointer(&o.action)), 0, 8, 0, 0)
		}
	}
}

//go:nosplit
//go:norace
func originalOf(i int) uintptr {
	switch i {
	case 0:
		return uintptr(unix.SIGQUIT)
	case 1:
		return uintptr(unix.SIGUSR1)
	}
	return uintptr(unix.SIGUSR2)
}
