package launch

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Package os/signal enables each signal by a handshake between two goroutines that are both tied to their threads, and starts four threads
// for it: a third of a millisecond in which nothing else happens. Signals that are to be passed on come through a pipe instead, from a
// handler of ten instructions (onSignal).

// caught is the end of the pipe that onSignal writes to: nothing can be handed to a signal handler.
var caught int32

// onSignal returns the address of the handler and of what it returns to, which is where the kernel takes over again.
func onSignal() (handler, restorer uintptr)

// catch sends the numbers of signals to the pipe that it returns, a byte each, until release is called. A signal that was ignored is caught too.
func catch(list []os.Signal) (fd int, release func(), err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, nil, fmt.Errorf("making a pipe for signals: %w", err)
	}
	caught = int32(pipe[1])
	handler, restorer := onSignal()
	const saOnStack, saRestart, saRestorer = 0x08000000, 0x10000000, 0x04000000 // sigaction(2)
	ours := action{handler, saOnStack | saRestart | saRestorer, restorer, ^uintptr(0)}
	old := make([]action, len(list))
	for i, s := range list {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s.(syscall.Signal)), uintptr(unsafe.Pointer(&ours)), uintptr(unsafe.Pointer(&old[i])), 8, 0, 0)
	}
	return pipe[0], func() { // the pipe stays: a handler may be just about to write
		for i, s := range list {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s.(syscall.Signal)), uintptr(unsafe.Pointer(&old[i])), 0, 8, 0, 0)
		}
	}, nil
}
