//go:build linux

package launch

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// action is struct sigaction as the kernel has it (amd64 and arm64: handler, flags, restorer, mask).
type action [4]uintptr

// install has a signal do what now says, for each of list, until the result is called.
func install(now action, list ...syscall.Signal) (restore func()) {
	set := func(s syscall.Signal, to, was *action) bool {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(to)),
			uintptr(unsafe.Pointer(was)), 8, 0, 0)
		return errno == 0
	}
	old := make([]action, len(list))
	known := make([]bool, len(list))
	for i, s := range list {
		known[i] = set(s, &now, &old[i])
	}
	return func() {
		for i, s := range list {
			if known[i] {
				set(s, &old[i], nil)
			}
		}
	}
}

// byDefault has the kernel do by itself what sig does, until the result is called. os/signal cannot bring that about
// for a signal that it has caught once: Reset leaves the runtime's handler in place, which then does nothing.
func byDefault(sig syscall.Signal) (restore func()) { return install(action{}, sig) }

// AsStarted has SIGQUIT, SIGUSR1 and SIGUSR2 do to this process what they did when it was started, which is what the
// handlers say (SIG_DFL or SIG_IGN), until the result is called. The Go runtime takes them for itself, unasked, and
// swallows them or answers with a trace of its own: to whoever sends one before there is a program to pass it on to, it
// is to do what it does to any other process. Package os/signal hears nothing of them until then.
func AsStarted(handlers [3]uintptr) (undo func()) {
	var all [3]func()
	for i, s := range [...]syscall.Signal{syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		all[i] = install(action{handlers[i]}, s)
	}
	return func() {
		for _, undo := range all {
			undo()
		}
	}
}
