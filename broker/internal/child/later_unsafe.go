//go:build linux

package child

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// startLater starts the program whose tape is in the slot, with the descriptors that came with the
// command. A failure is reported at once, the start after a moment. The program's fault, if it has one, is in
// the slot when it has ended.
//
//go:nosplit
//go:norace
func startLater(c *stage.Control, s *slot) {
	var fd [3]int32
	n := uintptr(0)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c.Cmsg[0]))
	if c.Hdr.Controllen >= uint64(unsafe.Sizeof(*h)) && h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_RIGHTS {
		n = (uintptr(h.Len) - unsafe.Sizeof(*h)) / 4
	}
	id := s.id // from its exec on, the slot may be another's
	errno := uintptr(0)
	if n != 3 || c.Hdr.Flags&unix.MSG_CTRUNC != 0 {
		errno = uintptr(unix.EMFILE)
	}
	if n > 3 {
		n = 3
	}
	for i := uintptr(0); i < n; i++ {
		fd[i%3] = *(*int32)(unsafe.Add(unsafe.Pointer(&c.Cmsg[0]), unsafe.Sizeof(*h)+4*i))
		s.job.Regs[(tape.RegA+i)&7] = uintptr(fd[i%3])
	}
	if c.Nprocs >= stage.MaxProcs {
		errno = uintptr(unix.EAGAIN)
	}
	pid := uintptr(0)
	if errno == 0 {
		pid, errno = s.job.Clone(uintptr(unix.CLONE_CHILD_CLEARTID|unix.SIGCHLD), &s.busy)
	}
	for i := uintptr(0); i < n; i++ {
		syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd[i%3]), 0, 0)
	}
	if errno != 0 {
		s.busy = 0
		stage.Send(c, stage.EvStarted, 0, id, int64(errno))
		return
	}
	c.Procs[c.Nprocs&(stage.MaxProcs-1)] = stage.Proc{PID: int32(pid), Id: id}
	c.Nprocs++
	if c.Untold == 0 {
		c.Tell = clock(c) + stage.TellAfter
	}
	c.Untold++
}

//go:nosplit
//go:norace
func clock(c *stage.Control) int64 {
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&c.Now)), 0)
	return int64(c.Now.Sec)*1_000_000_000 + int64(c.Now.Nsec)
}

// tellStarted reports the programs that have not ended at once.
//
//go:nosplit
//go:norace
func tellStarted(c *stage.Control) {
	for i := int64(0); i < c.Nprocs; i++ {
		if p := &c.Procs[i&(stage.MaxProcs-1)]; p.Told == 0 {
			p.Told = 1
			stage.Send(c, stage.EvStarted, int64(p.PID), p.Id, 0)
		}
	}
	c.Untold = 0
}
