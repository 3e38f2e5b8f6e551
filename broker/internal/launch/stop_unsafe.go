//go:build linux

package launch

import (
	"os"
	"os/signal"
	"slices"
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

// EndBy has a signal do to this process what it does where nobody hears it.
func EndBy(s syscall.Signal) {
	signal.Reset(s)
	if s == syscall.SIGQUIT { // which the runtime answers with a trace of its own
		byDefault(s)
	}
	_ = syscall.Kill(os.Getpid(), s)
}

// AsStarted has this process, and what it starts, do with signals what it was started to do, until the result is
// called. The Go runtime takes most of them for itself, unasked, and swallows them or answers with a trace of its own:
// to whoever sends one before there is a program to pass it on to, it is to do what it does to any other process.
// ignored are those that this process was started to ignore: signal N is bit N-1. Those that the runtime must have
// (SIGSEGV and the like) are left to it, and SIGIO, by which package decoy hears of its leases. What is passed on
// (forward) is heard again when the result is called.
func AsStarted(ignored uint64) (undo func()) {
	own := []syscall.Signal{syscall.SIGABRT, syscall.SIGALRM, syscall.SIGSTKFLT, syscall.SIGXCPU, syscall.SIGVTALRM,
		syscall.SIGPROF, syscall.SIGPWR}
	for s := syscall.Signal(35); s <= 64; s++ { // those before are a C library's
		own = append(own, s)
	}
	is := func(s syscall.Signal) bool { return ignored&(1<<(s-1)) != 0 }
	for s := syscall.Signal(1); s <= 64; s++ {
		if is(s) {
			signal.Ignore(s)
		}
	}
	install(action{}, slices.DeleteFunc(own, is)...)
	return install(action{}, slices.DeleteFunc([]syscall.Signal{syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}, is)...)
}
