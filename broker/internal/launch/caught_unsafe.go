package launch

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Package os/signal enables each signal by a handshake between two goroutines that are both tied to their threads, and starts four threads
// for it: a third of a millisecond in which nothing else happens. Signals that are to be passed on come through a pipe instead, from a
// handler of ten instructions (onSignal).

// caught is the end of the pipe that onSignal writes to: nothing can be handed to a signal handler.
//
//lint:ignore U1000 caught_*.s reads it
var caught int32

// onSignal returns the address of the handler and of what it returns to, which is where the kernel takes over again.
func onSignal() (handler, restorer uintptr)

// catch sends the numbers of signals to the pipe that it returns, a byte each, until release is called. A signal that was ignored is caught too.
func catch(list []syscall.Signal) (fd int, release func(), err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return -1, nil, fmt.Errorf("making a pipe for signals: %w", err)
	}
	caught = int32(pipe[1]) // it stays open: a handler may be just about to write
	handler, restorer := onSignal()
	const saOnStack, saRestart, saRestorer = 0x08000000, 0x10000000, 0x04000000 // sigaction(2)
	return pipe[0], install(action{handler, saOnStack | saRestart | saRestorer, restorer, ^uintptr(0)}, list...), nil
}
