//go:build linux

package faststart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// entry is the process 1 that enter has cloned; written once, before the runtime starts.
var entry struct {
	pid, flags uintptr
	errno      syscall.Errno // of a clone that failed
	place      placement
	pair       [2]int32
	block      *child.Block
	exec       execClient
	ahead      aheadEntry
	room       [spareProcs]uintptr // processes of needRoom
	idle       unix.Timespec
	given      given
}

// notRun are options with which nothing is run, or perhaps nothing.
var notRun = [...]string{"--dry-run", "--help", "-h", "--no-sandbox", "--detach", "-d", "--unless-sandboxed"}

// enter is called with the program's arguments before anything else happens in the process. If they begin
// with "run", or with what a detached broker is started as, it clones process 1: there is hardly any memory to copy
// yet, and the kernel makes the namespaces while the Go runtime starts on the other processor. Whatever goes wrong here
// is tried again by Prepare, which says why.
//
//lint:ignore U1000 entry_*.s calls it
//go:nosplit
//go:norace
func enter(argc uintptr, argv unsafe.Pointer) {
	if argc >= 4 && isArg(argv, 1, "exec") {
		enterExec(argc, argv)
		return
	}
	entry.given.save()
	detached := argc >= 3 && isArg(argv, 1, "run-detached")
	if argc < 3 || !detached && !isArg(argv, 1, "run") {
		return
	}
	for i := uintptr(2); !detached && i < argc && !isArg(argv, i, "--"); i++ {
		for k := range notRun {
			if isArg(argv, i, notRun[k]) {
				return
			}
		}
	}
	needRoom()
	at, _, e := syscall.RawSyscall6(syscall.SYS_MMAP, 0, unsafe.Sizeof(child.Block{}), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_ANON|unix.MAP_NORESERVE, ^uintptr(0), 0)
	if e != 0 {
		return
	}
	b := (*child.Block)(tape.Address(at))
	fds := &entry.pair
	_, _, e = syscall.RawSyscall6(syscall.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0,
		uintptr(unsafe.Pointer(fds)), 0, 0)
	if e != 0 {
		return
	}
	if fds[0] <= 2 || fds[1] <= 2 || fds[1] >= stage.FdFirst { // some of 0 to 2 are closed, or too many others are open
		syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fds[0]), 0, 0)
		syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fds[1]), 0, 0)
		return
	}
	if !detached {
		openAhead(&entry.ahead, argc, argv, uint64(fds[1]))
	}
	b.Enter(stage.CloneUsual, uintptr(fds[1]), uintptr(fds[0]))
	p, m := &entry.place, entry.ahead.file
	elsewhere(&p.all, &p.apart)
	pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, child.FirstFlags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e == 0 && pid == 0 {
		b.Unshare()
		if m != nil {
			carryAhead(b, m)
		}
		b.Live()
	}
	if e == 0 {
		setApart(p, pid)
		p.batch()
	}
	syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fds[1]), 0, 0)
	entry.errno = e
	if e == 0 {
		entry.block, entry.flags, entry.pid = b, stage.CloneUsual, pid
	}
}

// isArg says whether argument i is s.
//
//go:nosplit
//go:norace
func isArg(argv unsafe.Pointer, i uintptr, s string) bool {
	p := *(*unsafe.Pointer)(unsafe.Add(argv, 8*i))
	for k := 0; k < len(s); k++ {
		if *(*byte)(unsafe.Add(p, k)) != s[k] {
			return false
		}
	}
	return *(*byte)(unsafe.Add(p, len(s))) == 0
}

// carryAhead has process 1 carry out the remembered tape, instead of waiting for the plan's. It is a copy of what the
// broker compares.
//
//go:nosplit
//go:norace
func carryAhead(b *child.Block, m *aheadFile) {
	n := m.nops
	if n > aheadOps {
		tape.Exit(1)
	}
	b.Carry(m.ops[:n])
}
