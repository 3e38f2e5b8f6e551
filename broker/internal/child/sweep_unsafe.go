//go:build linux

package child

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// sweep is memory for ending everything below process 1.
type sweep struct {
	list   [4096]byte
	wait   unix.Timespec
	rounds int64
}

// maxRounds bounds how long that goes on: a program that starts others faster than they are ended is left behind.
const maxRounds = 500

// sweepAll kills the children of process 1 until it has none, and says whether that came about: those who lose their
// parent become its own. It is for where a signal to all would reach more.
//
//go:noinline
//go:nosplit
//go:norace
func sweepAll(b *Block) bool {
	s, c := &b.sweep, &b.control
	for s.rounds = 0; s.rounds < maxRounds; s.rounds++ {
		syscall.RawSyscall(syscall.SYS_LSEEK, fdChildren, 0, 0)
		n, _, e := syscall.RawSyscall(syscall.SYS_READ, fdChildren, uintptr(unsafe.Pointer(&s.list[0])),
			uintptr(len(s.list)))
		if e == 0 {
			killListed(s, int(n))
		}
		for {
			v, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), 0, unix.WNOHANG, 0, 0, 0)
			if e == unix.ECHILD {
				return true
			}
			if e != 0 || v == 0 {
				break
			}
			c.Last.Killed++
		}
		s.wait = unix.Timespec{Nsec: 10_000_000}
		syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&s.wait)), 0, 0)
	}
	return false
}

// killListed kills the processes whose numbers are in a list.
//
//go:noinline
//go:nosplit
//go:norace
func killListed(s *sweep, n int) {
	pid := uintptr(0)
	for i := 0; i < n && i < len(s.list); i++ {
		d := s.list[i]
		if d >= '0' && d <= '9' {
			pid = pid*10 + uintptr(d-'0')
			continue
		}
		if pid > 1 {
			syscall.RawSyscall(syscall.SYS_KILL, pid, uintptr(unix.SIGKILL), 0)
		}
		pid = 0
	}
}

// finishAll ends everything below process 1 where a signal to all processes must not be sent. What cannot die is left:
// process 1 says so and stays until nobody listens any more, for who ends it otherwise sends that signal.
//
//go:noinline
//go:nosplit
//go:norace
func finishAll(b *Block) {
	if b.prog.shared != oneByOne || sweepAll(b) {
		return
	}
	c := &b.control
	c.Last.Left = 1
	stage.Send(c, stage.EvExited, c.Main, int64(c.Status), 0)
	for !hungUp(b) {
		b.sweep.wait = unix.Timespec{Nsec: 10_000_000}
		syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&b.sweep.wait)), 0, 0)
	}
	tape.Exit(0)
}

// hungUp says whether nobody sends commands any more, in a shared PID namespace: elsewhere process 1 may just end.
//
//go:noinline
//go:nosplit
//go:norace
func hungUp(b *Block) bool {
	if b.prog.shared == 0 {
		return false
	}
	n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, stage.FdSock, uintptr(unsafe.Pointer(&b.sweep.list[0])), 1,
		unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return e == 0 && n == 0
}
