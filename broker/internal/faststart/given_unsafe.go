//go:build linux

package faststart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// given is what the Go runtime changes for itself, unasked, as this process was started with it.
type given struct {
	ignored uint64    // signals, as SigIgn in proc(5) has them: signal N is bit N-1
	files   [2]uint64 // RLIMIT_NOFILE; zero where it cannot be read
	action  [4]uintptr
	plain   [4]uintptr
}

// save reads it before the runtime starts, which tells nobody. SIGCHLD is ignored by nobody from here on: who cloned
// process 1 so, or is cloned as process 1, could not wait for children.
//
//go:nosplit
//go:norace
func (g *given) save() {
	const ignore = 1 // SIG_IGN
	for s := uintptr(1); s <= 64; s++ {
		g.action[0] = 0
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, s, 0, uintptr(unsafe.Pointer(&g.action)), 8, 0, 0)
		switch {
		case g.action[0] != ignore:
		case s == uintptr(unix.SIGCHLD):
			syscall.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&g.plain)), 0, 8, 0, 0)
		default:
			g.ignored |= 1 << (s - 1)
		}
	}
	syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 0, uintptr(unsafe.Pointer(&g.files)), 0, 0)
}

// Ignored are the signals that this process was started to ignore, but for SIGCHLD: signal N is bit N-1.
func Ignored() uint64 { return entry.given.ignored }

// Files is the soft limit of open descriptors that this process was started with; 0 where it is not known.
func Files() uint64 { return entry.given.files[0] }
