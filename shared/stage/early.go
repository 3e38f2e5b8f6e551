package stage

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// Early is a process 1 that was cloned before its plan was known. It makes its namespaces, which takes as
// long as planning does, and waits. It holds nothing, sees nothing and does nothing until Start gives it a
// plan; it ends when it is not wanted and when its parent does.
type Early struct {
	pid    int
	sock   int // ours
	peer   int // the number of its end of the socket, in process 1
	flags  uintptr
	block  *block
	memory []byte
	ahead  *ahead // nil: it waits for its plan
}

// Prepare clones process 1. The calling goroutine must stay locked to its thread, as for Start without it.
func Prepare(n plan.Namespaces) (*Early, error) { return prepare(n, nil, 0) }

// prepare clones process 1, in network unless that is nil, and in the control group whose directory is cgroup
// unless that is 0: to move a process there takes the kernel ten milliseconds and more, to begin there nothing.
func prepare(n plan.Namespaces, network *Network, cgroup int) (*Early, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making control socket: %w", err)
	}
	e := &Early{sock: pair[0], flags: cloneFlags(n)}
	moved, closeMoved, err := moveAway(pair[1:])
	if err == nil {
		e.peer = moved[0]
		e.block, e.memory, err = newBlock(unix.MAP_SHARED)
	}
	if err == nil {
		e.block.prog.cgroup = uint64(cgroup)
		err = e.clone(n, network)
	}
	closeMoved()
	unix.Close(pair[1])
	if err != nil {
		unix.Close(pair[0])
		return nil, err
	}
	return e, nil
}

func (e *Early) clone(n plan.Namespaces, network *Network) error {
	prog := &e.block.prog
	if network != nil {
		moved, undo, err := moveAway([]int{int(network.User.Fd()), int(network.Net.Fd())})
		defer undo()
		if err != nil {
			return err
		}
		prog.joined, prog.user, prog.net = true, uintptr(moved[0]), uintptr(moved[1])
	}
	prog.flags, prog.sock, prog.other = e.flags, uintptr(e.peer), uintptr(e.sock)
	syscall.ForkLock.Lock()
	pid, errno := launch(prog)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return cloneFault(n, syscall.Errno(errno))
	}
	e.pid = int(pid)
	if prog.joined {
		awaitEnd(e.pid)
		runtime.KeepAlive(network)
		if e.pid = int(prog.pid); e.pid == 0 {
			return cloneFault(n, syscall.Errno(prog.unshare))
		}
	}
	return nil
}

func awaitEnd(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}

func cloneFault(n plan.Namespaces, errno syscall.Errno) *Fault {
	return &Fault{Phase: "setup", Index: -1, Step: "cloning", Object: n.Text(), Errno: errno}
}

// suits says whether e can carry out p: it has the namespaces, and the descriptors, that it was cloned with.
func (e *Early) suits(p *plan.Plan, std Stdio) bool {
	if e == nil || e.pid == 0 || e.flags != cloneFlags(p.Namespaces) || p.Namespaces.JoinNet {
		return false
	}
	for _, fd := range std {
		if fd > 2 {
			return false
		}
	}
	return true
}

// PID is process 1, seen from outside; 0 for none.
func (e *Early) PID() int {
	if e == nil {
		return 0
	}
	return e.pid
}

// Spread gives this process's threads, and so what they start, the processors and the policy that it was started with, before the time has come.
// Nil is allowed.
func (e *Early) Spread() {
	if e != nil && e.block != nil {
		e.block.prog.spread()
	}
}

// End ends e if nobody has taken it. Nil is allowed.
func (e *Early) End() {
	if e == nil || e.pid == 0 {
		return
	}
	e.Spread()
	_ = unix.Kill(e.pid, unix.SIGKILL)
	awaitEnd(e.pid)
	if e.ahead != nil {
		e.ahead.foreign = e.block.control.setup.errno == int64(unix.EEXIST)
	}
	e.pid = 0
	unix.Close(e.sock)
	_ = unix.Munmap(e.memory)
	e.block, e.memory = nil, nil // who tries again comes with this one
}
