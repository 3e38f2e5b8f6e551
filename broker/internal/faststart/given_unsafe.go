//go:build linux

package faststart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// given is what this process was started with for the signals that the Go runtime takes for itself, unasked: struct
// sigaction of each.
type given [3][4]uintptr

// save reads it before the runtime starts, which tells nobody. What cannot be read is 0, which is SIG_DFL.
//
//go:nosplit
//go:norace
func (g *given) save() {
	signals := [3]uintptr{uintptr(unix.SIGQUIT), uintptr(unix.SIGUSR1), uintptr(unix.SIGUSR2)}
	for i := range signals {
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, signals[i], 0, uintptr(unsafe.Pointer(&g[i])), 8, 0, 0)
	}
}

// Signals is what SIGQUIT, SIGUSR1 and SIGUSR2 did when this process was started, SIG_DFL or SIG_IGN.
func Signals() (handlers [3]uintptr) {
	for i := range handlers {
		handlers[i] = entry.given[i][0]
	}
	return handlers
}
