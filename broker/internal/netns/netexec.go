//go:build linux

package netns

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/shared/stage"
)

// Exec runs a program in the user namespace that owns the network, as its root, which outside is nobody but the caller.
// Files are its descriptors from 0 on. It dies with the calling thread. It returns the pid, which the caller waits for.
func (n *Network) Exec(path string, argv, env []string, files []*os.File) (int, error) {
	list := []int{int(n.User.Fd())}
	for _, f := range files {
		list = append(list, int(f.Fd()))
	}
	moved, undo, err := stage.MoveAway(list)
	defer undo()
	if err != nil {
		return 0, err
	}
	m, t, unmap, err := newOne()
	if err != nil {
		return 0, err
	}
	defer unmap() // what the child has of it is a mapping of its own
	// First out of the way of the numbers that they are to have.
	const above = 100
	for i, fd := range moved {
		t.Call(unix.SYS_DUP3, uintptr(fd), uintptr(above+i), unix.O_CLOEXEC)
	}
	t.At("entering the network's user namespace", "")
	t.Call(unix.SYS_SETNS, above, unix.CLONE_NEWUSER)
	t.Call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)) // entering cleared it
	t.Call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	t.Call(unix.SYS_SETSID)
	for i := range files {
		t.Call(unix.SYS_DUP3, uintptr(above+1+i), uintptr(i), 0)
	}
	t.Call(unix.SYS_CLOSE_RANGE, uintptr(len(files)), uintptr(^uint32(0)), 0)
	t.Call(unix.SYS_CHDIR, t.Str("/"))
	t.At(steps.ExecStep, path)
	t.Call(unix.SYS_EXECVE, t.Str(path), steps.Vector(t, argv), steps.Vector(t, env))
	pid, err := m.start(0, t)
	runtime.KeepAlive(files)
	runtime.KeepAlive(n)
	return pid, err
}
