//go:build linux

package stage

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/plan"
)

// CloneUsual is CloneFlags of what nearly every sandbox has.
const CloneUsual = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

func CloneFlags(n plan.Namespaces) uintptr {
	f := uintptr(CloneUsual)
	for _, x := range [...]struct {
		on   bool
		flag uintptr
	}{{n.User, unix.CLONE_NEWUSER}, {n.Net && !n.JoinNet, unix.CLONE_NEWNET}, {n.IPC, unix.CLONE_NEWIPC}, {n.UTS, unix.CLONE_NEWUTS}, {n.Cgroup, unix.CLONE_NEWCGROUP}} {
		if !x.on {
			f &^= x.flag
		}
	}
	return f
}

// MoveAway duplicates those of fds that lie where process 1 keeps its own.
func MoveAway(fds []int) (out []int, undo func(), err error) {
	out = slices.Clone(fds)
	var made []int
	undo = func() {
		for _, fd := range made {
			unix.Close(fd)
		}
	}
	for i, fd := range fds {
		if fd >= FdFirst && fd <= fdLast {
			if out[i], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, fdLast+1); err != nil {
				return nil, undo, fmt.Errorf("moving descriptor %d: %w", fd, err)
			}
			made = append(made, out[i])
		}
	}
	return out, undo, nil
}

var ErrPlanTooLarge = errors.New("the plan is too large")
