package stage

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
	"sbx/shared/wire"
)

// DirectCaps are the only capabilities that a set-up without a user namespace starts with: mounting,
// bringing lo up in the new network namespace, and what leaving takes.
const DirectCaps = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETPCAP

// setupTime is how long process 1 may hold capabilities; the longest real set-up takes 20 ms.
const setupTime = 20 * time.Second

// direct says whether the tape runs without a user namespace: in the host's, with DirectCaps, uid 0 and
// the caller's fsuid, fsgid and groups, so that every file is reached with the caller's authority alone.
func (c *compiler) direct() bool { return c.tether >= 0 }

// checkTether ends process 1 where the helper died before the parent-death signal was set.
func (c *compiler) checkTether() {
	if c.direct() {
		c.t.at("looking for the helper", "")
		c.t.call(unix.SYS_WRITE, fdTether, c.t.str("x"), 1)
	}
}

// becomeCaller takes the caller's ids for good; the capabilities go right after.
func (c *compiler) becomeCaller() {
	if c.direct() {
		uid, gid := uintptr(c.p.Identity.OutsideUID), uintptr(c.p.Identity.OutsideGID)
		c.t.call(unix.SYS_SETRESGID, gid, gid, gid)
		c.t.call(unix.SYS_SETRESUID, uid, uid, uid)
	}
}

// verifyCaller reads back that no id but the caller's is left.
func (c *compiler) verifyCaller() {
	if !c.direct() {
		return
	}
	t := c.t
	for _, x := range [...]struct {
		get, setfs uintptr
		id         uint32
	}{{unix.SYS_GETRESUID, unix.SYS_SETFSUID, c.p.Identity.OutsideUID}, {unix.SYS_GETRESGID, unix.SYS_SETFSGID, c.p.Identity.OutsideGID}} {
		b := t.buf(16)
		t.call(x.get, b, b+4, b+8)
		t.expect64(b, uint64(x.id)|uint64(x.id)<<32, uintptr(unix.EPERM))
		t.expect64(b+8, uint64(x.id), uintptr(unix.EPERM))
		t.call(x.setfs, ^uintptr(0)).to(regA) // an invalid id changes nothing and returns the present one
		t.want(regA, uintptr(x.id), uintptr(unix.EPERM))
	}
}

// letGo tells the helper that no privilege is left. What must be written to /proc/self follows: as an
// undumpable process's it was root's, and opening it took a right that process 1 never had.
func (c *compiler) letGo() {
	if !c.direct() {
		return
	}
	c.t.at("letting the helper go", "")
	c.t.call(unix.SYS_READ, fdTether, c.t.buf(8), 1).to(regA) // it has told the broker who process 1 is
	c.t.want(regA, 1, uintptr(unix.EPIPE))
	c.t.call(unix.SYS_CLOSE, fdTether)
	c.t.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	c.oom()
	c.t.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// Direct is the helper's way of starting a sandbox: process 1 reports to the broker on sock itself, and
// when this function returns either it holds no privilege any more or there is none. The caller must be
// locked to a thread that has DirectCaps, and must exit afterwards: while process 1 is privileged, the
// end of this process is its end. With before, the network namespace that the thread came from, it is in a new one already.
func Direct(p *plan.Plan, sock int, std Stdio, before int) error {
	flags := cloneFlags(p.Namespaces)
	if before >= 0 {
		if flags&unix.CLONE_NEWNET == 0 {
			if err := unix.Setns(before, unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("going back to the network before: %w", err)
			}
		}
		flags &^= unix.CLONE_NEWNET
	}
	tether, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making the tether: %w", err)
	}
	fds, closeMoved, err := moveAway([]int{sock, tether[1], std[0], std[1], std[2]})
	if err != nil {
		return err
	}
	b, _, err := newBlock()
	if err != nil {
		return err
	}
	setup, start := b.tapes()
	if err := compileSetup(setup, p, fds[0], Stdio(fds[2:]), fds[1], nil); err != nil {
		return err
	}
	compileStart(start, p, nil)
	if b.lookAt(start, p); setup.full() || start.full() {
		return errPlanTooLarge
	}
	b.load(setup, start, false, false)
	b.control.announce, b.control.exitWithMain = 1, 1
	b.prog.flags = flags
	syscall.ForkLock.Lock()
	pid, errno := launchDirect(&b.prog)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return syscall.Errno(errno)
	}
	pidfd, err := unix.PidfdOpen(int(pid), 0)
	if err != nil {
		return fmt.Errorf("opening pidfd: %w", err)
	}
	closeMoved()
	unix.Close(tether[1])
	if err := (wire.Report{Kind: wire.Started, A: int64(pid)}).Send(sock, pidfd); err != nil {
		return fmt.Errorf("reporting process 1: %w", err)
	}
	if err := unix.Sendto(tether[0], []byte{1}, unix.MSG_NOSIGNAL, nil); err != nil {
		return fmt.Errorf("letting process 1 go: %w", err)
	}
	return awaitRelease(tether[0], time.Now().Add(setupTime))
}

// awaitRelease reads until every writer is gone.
func awaitRelease(fd int, deadline time.Time) error {
	var b [8]byte
	for {
		left := int(time.Until(deadline).Milliseconds())
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, left); n <= 0 && err != unix.EINTR {
			continue
		}
		if n, err := unix.Read(fd, b[:]); n == 0 || err != nil && err != unix.EINTR {
			return nil // closed, or reset because process 1 ended without having read; it has said why
		}
	}
}

// Attach is the broker's side of Direct: it follows, on sock, what the helper and then process 1 report.
// parent must return once the helper has ended; sooner process 1 is not this process's to wait for.
func Attach(p *plan.Plan, sock int, std Stdio, hooks Hooks, parent func()) (*Child, error) {
	b, memory, err := newBlock()
	if err != nil {
		unix.Close(sock)
		return nil, err
	}
	c := &Child{sock: sock, Fds: map[plan.FdRole]*os.File{}, Pidfd: -1, plan: p, parent: parent, control: &b.control, memory: memory}
	c.also.settled, c.also.since = hooks.Settled, time.Now()
	err = c.compile(b, sock, std, 0) // the same tapes, for the names of their steps
	if err == nil {
		err = c.awaitReady(p, hooks)
	}
	if err != nil {
		c.Kill()
		parent()
		c.Close()
		return nil, err
	}
	return c, nil
}

var errBeforeReady = errors.New("sbx-helper ended before the sandbox stood")

// report takes in what only a sandbox of the helper's says before it is ready.
func (c *Child) report(m message, fds []int, hooks Hooks) error {
	switch {
	case m.kind == int64(wire.Started) && len(fds) == 1 && c.PID == 0:
		c.PID, c.Pidfd = int(m.pid), fds[0]
		if hooks.Cloned != nil {
			return hooks.Cloned(c.PID)
		}
		return nil
	case m.kind == int64(wire.Refused):
		return &wire.Refusal{Reason: wire.Reason(m.pid), Where: m.value, Errno: syscall.Errno(m.extra)}
	case m.kind == evFault:
		return c.setup.faultAt("setup", fault{m.pid, m.value})
	}
	return fmt.Errorf("the helper sent message %d before the sandbox was ready", m.kind)
}

// note keeps what process 1 would have left in shared memory.
func (c *Child) note(m message) {
	switch {
	case c.parent == nil:
	case m.kind == evFailed:
		c.control.start = fault{m.pid, m.value}
	case m.kind == evMain:
		atomic.StoreInt64(&c.control.main, m.pid)
	case m.kind == evAfter:
		c.control.last.unpack(m)
	}
}

// mountOn calls mount(2) on rel. Where a hostile plan is carried out with CAP_SYS_ADMIN of the host's, a link
// in one of the caller's trees, or one of proc's, must not lead the mount to a place of the host's: what
// was mounted over /dev there would be the source of devices and masks, without what is mounted below
// it and without nodev. So targets in such trees are opened first, following nothing. c.opened is the number
// of that step, or -1.
func (c *compiler) mountOn(rel string, source, kind, flags, data uintptr) *op {
	t := c.t
	if c.opened = -1; !c.direct() || !c.isForeign(rel) {
		return t.call(unix.SYS_MOUNT, source, t.str(rel), kind, flags, data)
	}
	c.opened = len(t.ops)
	c.openInside(rel, regC)
	t.call(unix.SYS_DUP3, 0, fdTarget, unix.O_CLOEXEC).from(0, regC)
	t.call(unix.SYS_CLOSE).from(0, regC)
	target := t.str(fmt.Sprintf("/proc/self/fd/%d", fdTarget))
	i := len(t.ops)
	t.call(unix.SYS_MOUNT, source, target, kind, flags, data)
	t.call(unix.SYS_CLOSE, fdTarget)
	return &t.ops[min(i, len(t.ops)-1)]
}

// placeKernels notes a file system of the kernel's at rel: proc has links that lead out of the new root.
func (c *compiler) placeKernels(rel string) {
	if c.direct() {
		c.place(rel, true)
	}
}
