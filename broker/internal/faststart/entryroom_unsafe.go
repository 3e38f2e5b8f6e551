//go:build linux

package faststart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/tape"
)

const (
	// fewProcs is below which RLIMIT_NPROC it is worth a millisecond to see how much is left of it.
	fewProcs = 1024
	// spareProcs is how many more processes and threads a run needs: the Go runtime cannot say that it
	// could not make one, and ends with its own words.
	spareProcs = 14

	noRoom = "sbx: building sandbox: cloning: resource temporarily unavailable\n" +
		"hint: the limit on processes (RLIMIT_NPROC) is reached; end some, or raise it\n"
)

// needRoom ends this process if it could not start the threads that it will need.
//
//go:noinline
//go:nosplit
//go:norace
func needRoom() {
	var limit [2]uint64
	_, _, e := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, 0, uintptr(unsafe.Pointer(&limit)), 0, 0)
	if e != 0 || limit[0] >= fewProcs || haveRoom() {
		return
	}
	syscall.RawSyscall(unix.SYS_WRITE, 2, uintptr(unsafe.Pointer(unsafe.StringData(noRoom))), uintptr(len(noRoom)))
	tape.Exit(125)
}

// haveRoom tries it out with processes that do nothing.
//
//go:noinline
//go:nosplit
//go:norace
func haveRoom() bool {
	pids := &entry.room // the stack is short
	room := true
	for i := 0; i < spareProcs; i++ {
		pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if e == 0 && pid == 0 {
			entry.idle.Sec = 5 // whoever was to end it may have been killed
			syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&entry.idle)), 0, 0)
			tape.Exit(0)
		}
		if e != 0 {
			room = false
			break
		}
		pids[i] = pid
	}
	for i := 0; i < spareProcs; i++ {
		if pid := pids[i]; pid != 0 {
			syscall.RawSyscall(unix.SYS_KILL, pid, uintptr(unix.SIGKILL), 0)
			syscall.RawSyscall6(unix.SYS_WAIT4, pid, 0, 0, 0, 0, 0)
		}
	}
	return room
}
