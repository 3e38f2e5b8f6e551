//go:build linux

package child

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Early is what was begun before the plan was known (package faststart). It can only save time.
type Early interface {
	// Take returns process 1, if one that can carry out the plan was cloned already; any other is ended.
	Take(p *plan.Plan, std stage.Stdio, h *Hooks) *Init
	// Together has process 1 and the calling thread, which answers it, on one processor until the result is called.
	Together(pid int) (apart func())
	// Processors are those that process 1 gives itself before it is confined; nil: it has them.
	Processors(p *plan.Plan) *[16]uint64
	// Remember leaves the set-up for the next run with the same arguments.
	Remember(p *plan.Plan, folder Folder, std stage.Stdio)
	// TakeSession returns the folder of the session that process 1 has begun to set up, once; "" if there is none. Process
	// 1 makes it, if it has not done so yet. Whoever takes it has to remove it.
	TakeSession() string
	// Ahead says whether process 1 carries out a set-up already, which may still turn out to be another than what is
	// wanted.
	Ahead() bool
	// Unbatch gives this process's threads, and so what they start, the scheduling policy that it was started with.
	Unbatch()
	// End ends process 1 if nobody has taken it.
	End()
	// Discard ends it and removes the session's folder that it has made, Abandon where nobody has taken that.
	Discard()
	Abandon()
}

// NoEarly is an Early where nothing was begun.
type NoEarly struct{}

// NoEarly's methods do nothing.
func (NoEarly) Take(*plan.Plan, stage.Stdio, *Hooks) *Init { return nil }
func (NoEarly) Together(int) func()                        { return func() {} }
func (NoEarly) Processors(*plan.Plan) *[16]uint64          { return nil }
func (NoEarly) Remember(*plan.Plan, Folder, stage.Stdio)   {}
func (NoEarly) TakeSession() string                        { return "" }
func (NoEarly) Ahead() bool                                { return false }
func (NoEarly) Unbatch()                                   {}
func (NoEarly) End()                                       {}
func (NoEarly) Discard()                                   {}
func (NoEarly) Abandon()                                   {}

// Init is a process 1 that waits for its plan, or for the word to go on. It holds nothing, sees nothing and does
// nothing until Start gives it a plan; it ends when it is not wanted and when its parent does.
type Init struct {
	// Done is the set-up that it has carried out already, or is about to; nil: none.
	Done *tape.Tape
	// Release is called before it is told to go on; it may be nil.
	Release func() error

	pid   int
	sock  int // ours
	peer  int // the number of its end of the socket, in process 1
	flags uintptr
	block *Block
}

// NewInit is the process 1 that somebody else has cloned, see block.enter.
func NewInit(b *Block, pid, sock, peer int, flags uintptr) *Init {
	b.control.Init()
	return &Init{pid: pid, sock: sock, peer: peer, flags: flags, block: b}
}

// PrepareFor clones process 1 for a plan of which the namespaces, and how it is carried out, are known. The goroutine
// must be locked to its thread, see Start.
func PrepareFor(p *plan.Plan) (*Init, error) { return prepare(p, nil, 0) }

// prepare clones process 1, in network unless that is nil, and in the control group whose directory is cgroup unless
// that is 0: to move a process there takes the kernel ten milliseconds and more, to begin there nothing.
func prepare(p *plan.Plan, network *netns.Network, cgroup int) (*Init, error) {
	n := p.Namespaces
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making control socket: %w", err)
	}
	e := &Init{sock: pair[0], flags: stage.CloneFlags(n)}
	moved, closeMoved, err := stage.MoveAway(pair[1:])
	if err == nil {
		e.peer = moved[0]
		e.block, err = newBlock()
	}
	if err == nil {
		e.block.prog.cgroup = uint64(cgroup)
		if b := p.Bubblewrap; b != nil {
			if b.SharePIDs {
				e.flags &^= unix.CLONE_NEWPID
			}
			if b.UserNS >= 0 {
				e.flags &^= unix.CLONE_NEWUSER
			}
			if b.AtOnce {
				e.block.prog.first = e.flags
			}
		}
		if p.InPlace != nil {
			e.flags = 0
		}
		err = e.clone(p, network)
	}
	closeMoved()
	unix.Close(pair[1])
	if err != nil {
		unix.Close(pair[0])
		return nil, err
	}
	return e, nil
}

// joined are the namespaces that process 1 is cloned in: those of a network that was made before, or those that the
// caller of bubblewrap has.
func joined(p *plan.Plan, network *netns.Network) (fds []int, kinds []uintptr) {
	add := func(fd int, kind uintptr) {
		if fd >= 0 {
			fds, kinds = append(fds, fd), append(kinds, kind)
		}
	}
	if network != nil {
		add(int(network.User.Fd()), unix.CLONE_NEWUSER)
		add(int(network.Net.Fd()), unix.CLONE_NEWNET)
	}
	if b := p.Bubblewrap; b != nil {
		add(b.UserNS, unix.CLONE_NEWUSER)
		add(b.PIDNS, unix.CLONE_NEWPID)
	}
	return fds, kinds
}

func (e *Init) clone(p *plan.Plan, network *netns.Network) error {
	prog, n := &e.block.prog, p.Namespaces
	fds, kinds := joined(p, network)
	moved, undo, err := stage.MoveAway(fds)
	defer undo()
	if err != nil {
		return err
	}
	for i, fd := range moved {
		prog.joined, prog.joins[i] = true, joins{uintptr(fd), kinds[i]}
	}
	e.block.Enter(e.flags, uintptr(e.peer), uintptr(e.sock))
	syscall.ForkLock.Lock()
	pid, errno := launch(e.block)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return CloneFault(n, syscall.Errno(errno))
	}
	e.pid = int(pid)
	if prog.joined {
		netns.AwaitEnd(e.pid)
		runtime.KeepAlive(network)
		if e.pid = int(prog.pid); e.pid == 0 {
			return CloneFault(n, syscall.Errno(prog.unshare))
		}
	}
	return nil
}

func CloneFault(n plan.Namespaces, errno syscall.Errno) *steps.Fault {
	return &steps.Fault{Step: "cloning", Object: plan.NamespacesText(n), Errno: errno}
}

// Suits says whether e can carry out p: it has the namespaces, and the descriptors, that it was cloned with.
func (e *Init) Suits(p *plan.Plan, std stage.Stdio) bool {
	if e.flags != stage.CloneFlags(p.Namespaces) || p.Namespaces.JoinNet || p.InPlace != nil {
		return false
	}
	for _, fd := range std {
		if fd > 2 {
			return false
		}
	}
	return true
}

// PID is process 1, seen from outside.
func (e *Init) PID() int { return e.pid }

// Peer is the number of its end of the socket, in process 1.
func (e *Init) Peer() int { return e.peer }

// Failed says why the set-up that it carries out has stopped; 0 if it has not.
func (e *Init) Failed() syscall.Errno { return syscall.Errno(e.block.control.Setup.Errno) }

// End ends e and waits for that. Nobody may use e any more.
func (e *Init) End() {
	_ = unix.Kill(e.pid, unix.SIGKILL)
	netns.AwaitEnd(e.pid)
	unix.Close(e.sock)
}

// Unmap gives back what e shared with this process; e has ended.
func (e *Init) Unmap() { steps.Unmap(e.block) }
