package stage

import (
	"fmt"
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

// direct is a tape without a user namespace: it runs in the host's, with DirectCaps, uid 0 and the caller's
// fsuid, fsgid and groups, so that every file is reached with the caller's authority alone.
type direct struct {
	tether, tail int // descriptors of the helper
	uid, gid     uint32
}

// checkTether ends process 1 where the helper died before the parent-death signal was set.
func (c *compiler) checkTether() {
	if c.d != nil {
		c.t.at("looking for the helper", "")
		c.t.call(unix.SYS_WRITE, fdTether, c.t.str("x"), 1)
	}
}

// becomeCaller takes the caller's ids for good; the capabilities go right after.
func (c *compiler) becomeCaller() {
	if c.d != nil {
		uid, gid := uintptr(c.d.uid), uintptr(c.d.gid)
		c.t.call(unix.SYS_SETRESGID, gid, gid, gid)
		c.t.call(unix.SYS_SETRESUID, uid, uid, uid)
	}
}

// verifyCaller reads back that no id but the caller's is left.
func (c *compiler) verifyCaller() {
	if c.d == nil {
		return
	}
	t := c.t
	for _, x := range [...]struct {
		get, setfs uintptr
		id         uint32
	}{{unix.SYS_GETRESUID, unix.SYS_SETFSUID, c.d.uid}, {unix.SYS_GETRESGID, unix.SYS_SETFSGID, c.d.gid}} {
		b := t.buf(16)
		t.call(x.get, b, b+4, b+8)
		t.expect64(b, uint64(x.id)|uint64(x.id)<<32, uintptr(unix.EPERM))
		t.expect64(b+8, uint64(x.id), uintptr(unix.EPERM))
		t.call(x.setfs, ^uintptr(0)).to(regA) // an invalid id changes nothing and returns the present one
		t.want(regA, uintptr(x.id), uintptr(unix.EPERM))
	}
}

// letGo tells the helper that no privilege is left, and maps what is the caller's own from here on (see tail).
func (c *compiler) letGo() {
	if c.d == nil {
		return
	}
	c.t.at("letting the helper go", "")
	c.t.call(unix.SYS_READ, fdTether, c.t.buf(8), 1).to(regA) // it has told the broker who process 1 is
	c.t.want(regA, 1, uintptr(unix.EPIPE))
	c.t.call(unix.SYS_CLOSE, fdTether)
	c.t.at("mapping what is left to be done", "")
	c.t.call(unix.SYS_MMAP, tailAt, tailSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE|unix.MAP_NORESERVE, fdTail, 0)
}

// Direct is the helper's way of starting a sandbox for uid and gid: process 1 reports to the broker on sock itself, and
// when this function returns either it holds no privilege any more or there is none. The caller must be
// locked to a thread that has DirectCaps, and must exit afterwards: while process 1 is privileged, the
// end of this process is its end. What comes then is in the file of the descriptor tail, and nobody's but process 1 looks into it.
// With before, the network namespace that the thread came from, it is in a new one already.
func Direct(s *plan.Setup, uid, gid uint32, sock, tail int, std Stdio, before int) error {
	flags := cloneFlags(s.Namespaces)
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
	fds, closeMoved, err := moveAway([]int{sock, tether[1], tail, std[0], std[1], std[2]})
	if err != nil {
		return err
	}
	b, _, err := newBlock(unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	setup, _ := b.tapes()
	c := &compiler{s: s, t: setup, d: &direct{fds[1], fds[2], uid, gid}}
	if err := c.build(fds[0], Stdio(fds[3:])); err != nil {
		return err
	}
	if setup.full() {
		return errPlanTooLarge
	}
	b.control.announce, b.control.exitWithMain = 1, 1
	syscall.ForkLock.Lock()
	pid, errno := launchDirect(flags, setup.ops, &b.control)
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

// mountOn calls mount(2) on rel. Where a hostile plan is carried out with CAP_SYS_ADMIN of the host's, a link
// in one of the caller's trees, or one of proc's, must not lead the mount to a place of the host's: what
// was mounted over /dev there would be the source of devices and masks, without what is mounted below
// it and without nodev. So targets in such trees are opened first, following nothing. c.opened is the number
// of that step, or -1.
func (c *compiler) mountOn(rel string, source, kind, flags, data uintptr) *op {
	t := c.t
	if c.opened = -1; c.d == nil || !c.isForeign(rel) {
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
	if c.d != nil {
		c.place(rel, true)
	}
}
