package stage

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// startLater starts the program whose tape is in the slot, with the descriptors that came with the
// command. A failure is reported at once, the start after a moment. The program's fault, if it has one, is in
// the slot when it has ended.
//
//go:nosplit
//go:norace
func startLater(c *control, s *slot) {
	var fd [3]int32
	n := uintptr(0)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c.cmsg[0]))
	if c.hdr.Controllen >= uint64(unsafe.Sizeof(*h)) && h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_RIGHTS {
		n = (uintptr(h.Len) - unsafe.Sizeof(*h)) / 4
	}
	id := s.id // from its exec on, the slot may be another's
	errno := uintptr(0)
	if n != 3 || c.hdr.Flags&unix.MSG_CTRUNC != 0 {
		errno = uintptr(unix.EMFILE)
	}
	if n > 3 {
		n = 3
	}
	for i := uintptr(0); i < n; i++ {
		fd[i%3] = *(*int32)(unsafe.Add(unsafe.Pointer(&c.cmsg[0]), unsafe.Sizeof(*h)+4*i))
		s.job.regs[(regA+i)&7] = uintptr(fd[i%3])
	}
	if c.nprocs >= maxProcs {
		errno = uintptr(unix.EAGAIN)
	}
	pid := uintptr(0)
	if errno == 0 {
		pid, errno = s.job.clone(uintptr(unix.CLONE_CHILD_CLEARTID|unix.SIGCHLD), &s.busy)
	}
	for i := uintptr(0); i < n; i++ {
		syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd[i%3]), 0, 0)
	}
	if errno != 0 {
		s.busy = 0
		send(c, evStarted, 0, id, int64(errno))
		return
	}
	c.procs[c.nprocs&(maxProcs-1)] = proc{pid: int32(pid), id: id}
	c.nprocs++
	if c.untold == 0 {
		c.tell = clock(c) + tellAfter
	}
	c.untold++
}

//go:nosplit
//go:norace
func clock(c *control) int64 {
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&c.now)), 0)
	return int64(c.now.Sec)*1_000_000_000 + int64(c.now.Nsec)
}

// tellStarted reports the programs that have not ended at once.
//
//go:nosplit
//go:norace
func tellStarted(c *control) {
	for i := int64(0); i < c.nprocs; i++ {
		if p := &c.procs[i&(maxProcs-1)]; p.told == 0 {
			p.told = 1
			send(c, evStarted, int64(p.pid), p.id, 0)
		}
	}
	c.untold = 0
}
