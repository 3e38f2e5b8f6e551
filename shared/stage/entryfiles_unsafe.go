package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The Go runtime reads the control group's files before anything else, to learn how many processors it may use (runtime/cgroup_linux.go), which
// the broker does not care about: the kernel writes the mount table for that, and it takes a tenth of a millisecond. Nothing switches it off, but it
// goes on without where the files cannot be opened. So no file can be, until package syscall raises the limit as far as it goes, before any other
// package begins.

// fewFiles is a limit that is left alone: whoever set it wants to see what it does.
const fewFiles = 256

// withoutFiles keeps the runtime from opening files, and notes what the limit was.
//
//go:nosplit
//go:norace
func withoutFiles(was *syscall.Rlimit) {
	_, _, e := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 0, uintptr(unsafe.Pointer(was)), 0, 0)
	if e == 0 && was.Cur >= fewFiles {
		none := syscall.Rlimit{Max: was.Max}
		_, _, e = syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&none)), 0, 0, 0)
		if e == 0 {
			return
		}
	}
	*was = syscall.Rlimit{}
}

// ownFiles gives this process, and what it starts from now on, the limit on open files that it was started with. It is to be called before anything
// is started: what package syscall would give to programs is withoutFiles' limit.
func ownFiles() {
	if was := entry.files; was.Max != 0 {
		_ = syscall.Setrlimit(unix.RLIMIT_NOFILE, &was)
	}
}

// manyFiles lets this process open as many as it may, as package syscall does for every Go program.
func manyFiles() {
	if many := entry.files; many.Max != 0 {
		many.Cur = many.Max
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&many)), 0, 0, 0)
	}
}
