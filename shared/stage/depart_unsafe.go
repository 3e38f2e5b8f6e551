package stage

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Depart is called by a process that exits next, and returns. Taking the memory of a Go program apart takes the kernel half a millisecond, and its
// parent hears of the end only then. A child that shares the memory has that to do afterwards, and nothing else: it keeps no descriptor, handles no
// signal, and waits for this process's end. Only where a sandbox was run: others have less to take apart. Where there can be no child, the exit takes longer.
func Depart() {
	if entry.block == nil {
		return
	}
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return
	}
	s := new(slot)
	t := s.take(0)
	t.call(unix.SYS_CLOSE_RANGE, uintptr(fd)+1, ^uintptr(0), 0)
	t.call(unix.SYS_CLOSE_RANGE, 0, uintptr(fd)-1, 0)
	t.call(unix.SYS_PPOLL, ptr(t, &unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}), 1, 0, 0, 0)
	s.load(t)
	beforeFork() // it has no handler for any signal
	_, _ = rawSpawn(unix.CLONE_VM, uintptr(unsafe.Pointer(&s.stack))+slotStack, s, nil)
	afterFork()
}
