package stage

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// What is here takes no privilege: process 1 does it when it has given up all of them. sbx-helper holds none of it, and takes it as it
// comes (see Tail).

// compileSetup makes the tape of process 1 up to the point where the program can be started.
func compileSetup(t *tape, p *plan.Plan, sock int, std Stdio, folder Folder, cpus *[16]uint64) error {
	if !p.Namespaces.User {
		return errors.New("the plan is not for this way of carrying it out")
	}
	c := newBuilder(t, p)
	c.ns, c.folder, c.cpus = c, folder, cpus
	if err := c.build(sock, std); err != nil {
		return err
	}
	c.finish()
	return nil
}

// finish makes the rest of the tape: the filter is loaded last.
func (c *builder) finish() {
	t := c.t
	if c.ns == nil {
		c.prepareRights()
		t.at("making process 1 dumpable for a moment", "") // what such a process's file in /proc is root's
		t.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		c.oom()
	}
	c.terminal()
	c.limits()
	c.landlock()
	t.at("making process 1 undumpable", "")
	t.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if c.ns != nil {
		c.confined()
	}
	c.seccomp()
	c.ready()
}

// terminal opens the sandbox's own pseudo-terminal and makes it process 1's controlling terminal, so
// that the program's process group has a parent in its session and Ctrl-Z can stop it.
func (c *builder) terminal() {
	if !c.p.Process.TTY {
		return
	}
	t := c.t
	t.at("opening terminal", "/dev/pts/ptmx")
	t.call(unix.SYS_OPENAT, atCwd, t.str("/dev/pts/ptmx"), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0).to(regTTY)
	c.hand(plan.FdPty, regTTY)
	t.call(unix.SYS_IOCTL, 0, unix.TIOCSPTLCK, ptr(t, new([2]int32))).from(0, regTTY)
	t.call(unix.SYS_IOCTL, 0, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC).from(0, regTTY).to(regA)
	t.call(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0).from(0, regA)
	for i, kind := range c.s.Stdio {
		if kind == plan.Pty {
			t.call(unix.SYS_DUP3, 0, uintptr(fdStdio+i), unix.O_CLOEXEC).from(0, regA)
		}
	}
	t.call(unix.SYS_CLOSE).from(0, regA)
}

// prepareRights lays out the control message of the ready message (unix(7), SCM_RIGHTS).
func (c *builder) prepareRights() {
	if len(c.p.Fds) == 0 {
		return
	}
	fds := make([]int, len(c.p.Fds))
	c.cmsg = unix.UnixRights(fds...)
	c.rights = c.t.bytes(c.cmsg)
}

// hand notes register r's descriptor for the role; it must stay open until ready.
func (c *builder) hand(role plan.FdRole, r uint8) {
	i := slices.Index(c.p.Fds, role)
	c.t.poke(c.rights+uintptr(unix.CmsgLen(0))+uintptr(4*i), r)
}

// ready tells the broker that the set-up is done and hands over the plan's descriptors.
func (c *builder) ready() {
	t := c.t
	t.at("reporting", "ready")
	sendmsg(t, fdSock, encoded(message{kind: evReady}), c.rights, len(c.cmsg))
	t.at("closing descriptors", "")
	t.call(unix.SYS_CLOSE_RANGE, fdFuse, uintptr(^uint32(0)), 0)
	t.call(unix.SYS_CLOSE_RANGE, 3, fdSock-1, 0)
	if c.ns != nil {
		c.reported()
	}
}

func (c *builder) limits() {
	t := c.t
	for i := range c.p.Limits {
		l := &c.p.Limits[i]
		t.at("setting limit", l.Name)
		t.call(unix.SYS_PRLIMIT64, 0, uintptr(l.Resource), ptr(t, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}), 0)
	}
	t.at("leaving the session keyring", "")
	t.call(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0).may(anyErrno)
}

// landlock adds the second line (landlock(7)). The rules name paths as seen inside, which exist by now.
func (c *builder) landlock() {
	l := c.p.Landlock
	if l == nil {
		return
	}
	t := c.t
	t.at("making landlock rules", "")
	attr := &[3]uint64{l.HandledFS, 0, l.Scoped}
	size := uintptr(8)
	if l.ABI >= 6 {
		size = 24
	} else if l.ABI >= 4 {
		size = 16
	}
	t.call(unix.SYS_LANDLOCK_CREATE_RULESET, ptr(t, attr), size, 0).to(regB)
	for _, r := range l.Rules {
		t.at("landlock rule", string(r.Path))
		rule := &[2]uint64{r.Access, 0}
		addr := ptr(t, rule)
		t.call(unix.SYS_OPENAT, atCwd, t.str(string(r.Path)), unix.O_PATH|unix.O_CLOEXEC, 0).to(regA).may(uint16(unix.ENOENT)).elseSkip(3)
		t.poke(addr+8, regA)
		t.call(unix.SYS_LANDLOCK_ADD_RULE, 0, unix.LANDLOCK_RULE_PATH_BENEATH, addr, 0).from(0, regB)
		t.call(unix.SYS_CLOSE).from(0, regA)
	}
	t.at("entering landlock", "")
	t.call(unix.SYS_LANDLOCK_RESTRICT_SELF, 0, 0).from(0, regB)
	t.call(unix.SYS_CLOSE).from(0, regB)
}

func (c *builder) seccomp() {
	t := c.t
	s := &c.p.Seccomp
	t.at("loading the system-call filter", s.Rules)
	prog := make([]unix.SockFilter, len(s.Program))
	for i, in := range s.Program {
		prog[i] = unix.SockFilter{Code: in.Code, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	flags := uintptr(0)
	if s.Notify {
		// WAIT_KILLABLE_RECV (5.19): without it a Go program's preemption signals restart a waiting
		// call for ever.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	o := t.call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, filter(t, prog))
	if s.Notify {
		o.to(regListener)
		c.hand(plan.FdSeccomp, regListener)
	}
}

// compileStart makes the tape that starts the program from process 1, or that process 1 becomes it.
func compileStart(t *tape, p *plan.Plan) {
	pr := &p.Process
	t.at("starting", "process group")
	t.call(unix.SYS_SETPGID, 0, 0).may(uint16(unix.EPERM))
	if pr.TTY && !p.Background() {
		pid := t.buf(8)
		t.call(unix.SYS_GETPID).to(regA)
		t.poke(pid, regA)
		for i, kind := range p.Stdio {
			if kind == plan.Pty {
				t.call(unix.SYS_IOCTL, uintptr(fdStdio+i), unix.TIOCSPGRP, pid).may(anyErrno)
				break
			}
		}
	}
	plain := t.buf(32)
	if !p.Namespaces.User { // sbx-helper ignores them
		t.at("starting", "signals")
		for _, s := range [...]unix.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} {
			t.call(unix.SYS_RT_SIGACTION, uintptr(s), plain, 0, 8)
		}
	}
	if p.Background() { // a shell's substitution ignores them: then reading would fail instead of stopping the program
		t.at("starting", "signals")
		t.call(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTTIN), plain, 0, 8)
		t.call(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTTOU), plain, 0, 8)
	}
	for i := range p.Stdio {
		t.at("passing descriptor", fmt.Sprint(i))
		t.call(unix.SYS_DUP3, uintptr(fdStdio+i), uintptr(i), 0)
	}
	t.at("starting", "umask")
	t.call(unix.SYS_UMASK, uintptr(pr.Umask))
	t.at("entering directory", string(pr.Dir))
	t.call(unix.SYS_CHDIR, t.str(string(pr.Dir)))
	t.at("starting", "signal mask")
	t.call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, ptr(t, new([1]uint64)), 0, 8)
	t.at(execStep, string(pr.Path))
	t.call(unix.SYS_EXECVE, t.str(string(pr.Path)), vector(t, stringsOf(pr.Argv)), vector(t, stringsOf(pr.Env)))
}

func stringsOf(list []plan.Bytes) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
