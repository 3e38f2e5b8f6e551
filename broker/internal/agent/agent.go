//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Descriptors that the agent keeps besides its socket.
const (
	fdHostNS   = stage.FdSock + 1 // its own mount namespace, the host's view
	fdHostRoot = stage.FdSock + 2 // the root of that view, as the broker has it
	fdInsideNS = stage.FdSock + 3 // the sandbox's mount namespace
	fdUserNS   = stage.FdSock + 4 // given up after entering it
	agentFirst = fdUserNS         // descriptors from here on are those of one order

	// What an order names; all else that it opens has the lowest number that is free.
	fdUnmounted = agentFirst + 50
)

// agentCaps are for mounting and for changing between mount namespaces.
const agentCaps = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_CHROOT

// agentPatience is how long an order may take. What takes longer hangs in a file system of somebody else's.
const agentPatience = 5 * time.Second

// ErrNoAgent says that the agent could not be started or did not answer.
var ErrNoAgent = errors.New("the agent does not answer")

// Agent mounts and unmounts in a running sandbox. It is a process that stands in the sandbox's user namespace and
// outside its PID namespace, with a copy of the caller's mount namespace; it is started by the first order and again if
// it was killed.
type Agent struct {
	user, inside *os.File
	pid          atomic.Int64
	mu           sync.Mutex
	proc         *agentProcess
	closed       bool
}

type agentProcess struct {
	sock int
	b    *agentBlock
	pid  int
}

// New takes the sandbox's user and mount namespaces, plan.FdUserNS and plan.FdMountNS, which are its own from then on.
func New(user, inside *os.File) *Agent { return &Agent{user: user, inside: inside} }

// PID is the agent's process id as the caller knows it, 0 while there is none.
func (a *Agent) PID() int { return int(a.pid.Load()) }

// Close ends the agent.
func (a *Agent) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end()
	if !a.closed {
		a.closed = true
		a.user.Close()
		a.inside.Close()
	}
}

// end lets the process go; its thread reaps it. a.mu is held.
func (a *Agent) end() {
	if a.proc == nil {
		return
	}
	unix.Close(a.proc.sock)
	_ = unix.Kill(a.proc.pid, unix.SIGKILL)
	a.proc = nil
	a.pid.Store(0)
}

// start clones the agent from a thread that lives as long as it does, because the agent dies with that thread.
func (a *Agent) start() error {
	if a.closed {
		return fmt.Errorf("starting the agent: %w", os.ErrClosed)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making the agent's socket: %w", err)
	}
	b, err := newAgentBlock()
	if err != nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return err
	}
	t, undo, err := agentSetup(b, pair[1], int(a.user.Fd()), int(a.inside.Fd()))
	defer undo()
	defer func() {
		if pair[1] >= 0 { // not twice: the number may be somebody else's by now
			unix.Close(pair[1])
		}
	}()
	if err != nil {
		unix.Close(pair[0])
		return err
	}
	pid, err := a.clone(b, t)
	if err != nil {
		unix.Close(pair[0])
		return err
	}
	a.proc = &agentProcess{sock: pair[0], b: b, pid: pid}
	tv := unix.NsecToTimeval(int64(agentPatience))
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		a.end()
		return fmt.Errorf("limiting the agent's time: %w", err)
	}
	unix.Close(pair[1])
	pair[1] = -1
	if _, err := a.reply(t); err != nil {
		return err
	}
	a.pid.Store(int64(pid))
	return nil
}

// clone makes the process, and reaps it from the thread that is its parent when it ends.
func (a *Agent) clone(b *agentBlock, t *tape.Tape) (pid int, err error) {
	type cloned struct {
		pid   int
		errno syscall.Errno
	}
	started := make(chan cloned)
	go func() {
		runtime.LockOSThread()
		syscall.ForkLock.Lock()
		p, errno := launchAgent(b)
		syscall.ForkLock.Unlock()
		runtime.KeepAlive(t)
		started <- cloned{int(p), syscall.Errno(errno)}
		if errno != 0 {
			return
		}
		for {
			if _, err := syscall.Wait4(int(p), nil, 0, nil); err != syscall.EINTR {
				break
			}
		}
		a.pid.CompareAndSwap(int64(p), 0) // its memory stays mapped: an order may just be written there
	}()
	c := <-started
	if c.errno != 0 {
		return 0, fmt.Errorf("cloning the agent: %w", c.errno)
	}
	return c.pid, nil
}

// agentSetup compiles what the agent does before its first order, and what it does after each.
func agentSetup(b *agentBlock, sock, user, inside int) (*tape.Tape, func(), error) {
	moved, undo, err := stage.MoveAway([]int{sock, user, inside})
	if err != nil {
		return nil, undo, err
	}
	t := &tape.Tape{Arena: tape.NewArena(b.data[:])}
	t.At("starting the agent", "")
	t.Call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, tape.Ptr(t, &[1]uint64{stage.AllSignals}), 0, 8)
	t.Call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	t.Call(unix.SYS_SETSID)
	t.Call(unix.SYS_DUP3, uintptr(moved[0]), stage.FdSock, unix.O_CLOEXEC)
	t.Call(unix.SYS_DUP3, uintptr(moved[1]), fdUserNS, unix.O_CLOEXEC)
	t.Call(unix.SYS_DUP3, uintptr(moved[2]), fdInsideNS, unix.O_CLOEXEC)
	t.At("closing descriptors", "")
	t.Call(unix.SYS_CLOSE_RANGE, 0, stage.FdSock-1, 0)
	t.Call(unix.SYS_CLOSE_RANGE, fdUserNS+1, uintptr(^uint32(0)), 0)
	t.At("entering the sandbox's user namespace", "")
	t.Call(unix.SYS_SETNS, fdUserNS, unix.CLONE_NEWUSER)
	// Entering clears the signal; a broker that died before closes the socket instead.
	t.Call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	t.Call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	t.At("copying the mount namespace", "")
	t.Call(unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/proc/self/ns/mnt"), unix.O_RDONLY|unix.O_CLOEXEC, 0).To(tape.RegA)
	t.Call(unix.SYS_DUP3, 0, fdHostNS, unix.O_CLOEXEC).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0).To(tape.RegA)
	t.Call(unix.SYS_DUP3, 0, fdHostRoot, unix.O_CLOEXEC).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	t.At("dropping capabilities", "")
	t.Call(unix.SYS_CAPSET, tape.Ptr(t, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}),
		tape.Ptr(t, &[2]unix.CapUserData{{Effective: agentCaps, Permitted: agentCaps}}))
	b.nsetup = int64(copy(b.setup[:], t.Ops))
	after := &tape.Tape{}
	after.Call(unix.SYS_SETNS, fdHostNS, unix.CLONE_NEWNS)
	after.Call(unix.SYS_CLOSE_RANGE, 0, stage.FdSock-1, 0) // what an order has opened has the lowest numbers
	after.Call(unix.SYS_CLOSE_RANGE, agentFirst, uintptr(^uint32(0)), 0)
	copy(b.after[:], after.Ops)
	for i := len(after.Ops); i < len(b.after); i++ {
		b.after[i] = tape.Op{Kind: tape.OpWant} // register 0 is always 0
	}
	if len(t.Ops) >= agentOps || t.Arena.Full {
		return nil, undo, fmt.Errorf("BUG(sbx): the agent's set-up does not fit")
	}
	return t, undo, nil
}

// reply waits for the end of an order. An agent that does not answer is ended: what it hangs in is not to hold up
// others.
func (a *Agent) reply(t *tape.Tape) (*os.File, error) {
	var buf [8]byte
	var oob [64]byte
	n, on, _, _, err := unix.Recvmsg(a.proc.sock, buf[:], oob[:], unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		n, on, _, _, err = unix.Recvmsg(a.proc.sock, buf[:], oob[:], unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil || n != 1 {
		if err == nil {
			err = unix.ECONNRESET
		}
		a.end()
		return nil, fmt.Errorf("%w: %w", ErrNoAgent, err)
	}
	var file *os.File
	if on > 0 {
		if scm, err := unix.ParseSocketControlMessage(oob[:on]); err == nil && len(scm) == 1 {
			if fds, err := unix.ParseUnixRights(&scm[0]); err == nil && len(fds) == 1 {
				file = os.NewFile(uintptr(fds[0]), "agent")
			}
		}
	}
	if f := a.proc.b.fault; f.Errno != 0 {
		if file != nil {
			file.Close()
		}
		return nil, steps.FaultAt(t, f)
	}
	return file, nil
}

// order has the agent carry out what build compiles.
func (a *Agent) order(build func(t *tape.Tape, b *agentBlock)) (*os.File, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for try := 0; ; try++ {
		if a.proc == nil {
			if err := a.start(); err != nil {
				return nil, err
			}
		}
		b := a.proc.b
		t, err := a.compile(build)
		if err != nil {
			return nil, err
		}
		if err := a.begin(); err != nil {
			if try == 0 { // it was killed while it had nothing to do
				continue
			}
			return nil, err
		}
		f, err := a.reply(t)
		runtime.KeepAlive(t)
		if try == 0 && errors.Is(err, unix.ECONNRESET) && b.begun == 0 {
			continue // it was killed, and has done nothing of this
		}
		return f, err
	}
}

// compile puts an order into the memory that the agent shares. a.mu is held.
func (a *Agent) compile(build func(t *tape.Tape, b *agentBlock)) (*tape.Tape, error) {
	b := a.proc.b
	t := &tape.Tape{Arena: tape.NewArena(b.data[:])}
	b.hdr.Controllen = 0
	b.fault = tape.Stop{}
	build(t, b)
	if len(t.Ops) >= agentOps || t.Arena.Full {
		return nil, fmt.Errorf("ordering the agent: %w", unix.ENAMETOOLONG)
	}
	b.n, b.begun = int64(copy(b.ops[:], t.Ops)), 0
	return t, nil
}

// begin has the agent carry out what was compiled. a.mu is held.
func (a *Agent) begin() error {
	if err := unix.Sendto(a.proc.sock, []byte{1}, unix.MSG_NOSIGNAL, nil); err != nil {
		a.end()
		return fmt.Errorf("%w: %w", ErrNoAgent, err)
	}
	return nil
}

// cleanRel checks an absolute path and returns it relative to the root.
func cleanRel(p string) (string, error) {
	if !path.IsAbs(p) || path.Clean(p) != p || strings.IndexByte(p, 0) >= 0 || len(p) > 4095 {
		return "", fmt.Errorf("ordering the agent: %s is not an absolute clean path", plan.Bytes(p).Quote())
	}
	if p == "/" {
		return ".", nil
	}
	return p[1:], nil
}
