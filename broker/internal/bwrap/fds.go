//go:build linux

package bwrap

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/plan"
)

// The caller's descriptors: the set-up has some of their numbers for its own.

// moveAway gives what of the caller's lies where the set-up has its own descriptors another number.
func moveAway() ([]plan.MovedFd, error) {
	moved := []plan.MovedFd{}
	for fd := child.FirstOwnFd; fd <= child.LastOwnFd; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		at, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, child.LastOwnFd+1)
		if err != nil {
			return nil, failErrno(err, "Can't move descriptor %d", fd)
		}
		moved = append(moved, plan.MovedFd{Fd: fd, At: at})
	}
	return moved, nil
}

// above gives fd, of the caller's, a number that the set-up does not use itself; -1 is none.
func (r *request) above(fd int) (int, error) {
	if fd < 0 {
		return fd, nil
	}
	r.read = append(r.read, fd)
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, child.LastOwnFd+1)
}

// keepLate does so with the descriptors that process 1 uses when it has its own.
func (r *request) keepLate() (err error) {
	if r.userns2, err = r.above(r.userns2); err != nil {
		return failErrno(err, "Setting userns2 failed")
	}
	block := r.block
	if r.block, err = r.above(block); err != nil && err != unix.EBADF { // of what is not open nobody waits for anything
		return failErrno(err, "Can't wait for descriptor %d", block)
	}
	if sync := r.sync; !r.pid1 {
		if r.sync, err = r.above(sync); err != nil {
			return failErrno(err, "Can't keep descriptor %d", sync)
		}
	}
	return nil
}

// letGo closes what was passed on: whoever has the other end is to hear when the sandbox has closed it.
func letGo(r *request, moved []plan.MovedFd) {
	for _, fd := range r.closed() {
		if fd != r.status {
			unix.Close(fd)
		}
	}
	for _, m := range moved {
		unix.Close(m.At)
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range list {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 || fd == r.status {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// limits are those that the program has where this process has another: soft is how many descriptors may be open.
func limits(soft uint64) []plan.Limit {
	var l unix.Rlimit
	if soft == 0 || unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur == soft {
		return []plan.Limit{}
	}
	return []plan.Limit{{Resource: unix.RLIMIT_NOFILE, Name: "nofile", Soft: soft, Hard: l.Max}}
}
