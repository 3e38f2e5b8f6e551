//go:build linux

package child

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// What is here takes no privilege: process 1 does it when it has given up all of them. sbx-helper holds none of it, and
// takes it as it comes (see Tail).

// CompileSetup makes the tape of process 1 up to the point where the program can be started.
func CompileSetup(t *tape.Tape, p *plan.Plan, sock int, std stage.Stdio, folder Folder, cpus *[16]uint64) error {
	if !p.Namespaces.User && p.InPlace == nil {
		return errors.New("the plan is not for this way of carrying it out")
	}
	c := newBuilder(t, p)
	c.NS, c.folder, c.cpus = c, folder, cpus
	defer openPlainly(t)
	if p.Bubblewrap != nil {
		return c.compileBubblewrap(sock)
	}
	if p.InPlace != nil {
		c.compileInPlace(sock, std)
		return nil
	}
	if err := c.Build(sock, std); err != nil {
		return err
	}
	c.finish()
	return nil
}

// dumpable makes the files of process 1 in /proc its own for a moment. Those of a process that nobody may trace are
// root's.
func (c *builder) dumpable() {
	c.T.At("making process 1 dumpable for a moment", "")
	c.T.Call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}

// finish makes the rest of the tape: the filter is loaded last.
func (c *builder) finish() {
	t := c.T
	if c.NS == nil {
		c.prepareRights()
		c.dumpable()
		c.oom()
	}
	c.terminal()
	c.limits()
	c.landlock()
	t.At("setting umask", "") // the program's, which inherits it: the filter hands over a call that sets it
	t.Call(unix.SYS_UMASK, uintptr(c.p.Process.Umask))
	t.At("making process 1 undumpable", "")
	t.Call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if c.NS != nil {
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
	t := c.T
	maker := terminalMaker(c.p)
	t.At("opening terminal", maker)
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(maker), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC,
		0).To(tape.RegTTY)
	c.hand(plan.FdPty, tape.RegTTY)
	t.Call(unix.SYS_IOCTL, 0, unix.TIOCSPTLCK, tape.Ptr(t, new([2]int32))).From(0, tape.RegTTY)
	t.Call(unix.SYS_IOCTL, 0, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC).From(0,
		tape.RegTTY).To(tape.RegA)
	t.Call(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0).From(0, tape.RegA)
	for i, kind := range c.Setup.Stdio {
		if kind == plan.Pty {
			t.Call(unix.SYS_DUP3, 0, uintptr(stage.FdStdio+i), unix.O_CLOEXEC).From(0, tape.RegA)
		}
	}
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
}

// prepareRights lays out the control message of the ready message (unix(7), SCM_RIGHTS).
func (c *builder) prepareRights() {
	if len(c.p.Fds) == 0 {
		return
	}
	fds := make([]int, len(c.p.Fds))
	c.cmsg = unix.UnixRights(fds...)
	c.rights = c.T.Bytes(c.cmsg)
}

// hand notes register r's descriptor for the role; it must stay open until ready.
func (c *builder) hand(role plan.FdRole, r uint8) {
	i := slices.Index(c.p.Fds, role)
	c.T.Poke(c.rights+uintptr(unix.CmsgLen(0))+uintptr(4*i), r)
}

// ready tells the broker that the set-up is done and hands over the plan's descriptors.
func (c *builder) ready() {
	t := c.T
	t.At("reporting", "ready")
	steps.Send(t, stage.FdSock, stage.Encoded(stage.Message{Kind: stage.EvReady}), c.rights, len(c.cmsg))
	t.At("closing descriptors", "")
	last := uintptr(stage.FdFuse)
	if c.p.InPlace != nil {
		last = fdChildren + 1
	}
	t.Call(unix.SYS_CLOSE_RANGE, last, uintptr(^uint32(0)), 0)
	t.Call(unix.SYS_CLOSE_RANGE, 3, stage.FdSock-1, 0)
	if c.NS != nil {
		c.reported()
	}
}

func (c *builder) limits() {
	t := c.T
	for i := range c.p.Limits {
		l := &c.p.Limits[i]
		t.At("setting limit", l.Name)
		t.Call(unix.SYS_PRLIMIT64, 0, uintptr(l.Resource), tape.Ptr(t, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}), 0)
	}
	t.At("leaving the session keyring", "")
	t.Call(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0).May(tape.AnyErrno)
}

// landlock adds the second line (landlock(7)). The rules name paths as seen inside, which exist by now.
func (c *builder) landlock() {
	l := c.p.Landlock
	if l == nil {
		return
	}
	t := c.T
	t.At("making landlock rules", "")
	attr := &[3]uint64{l.HandledFS, l.HandledNet, l.Scoped}
	size := uintptr(8)
	if l.ABI >= 6 {
		size = 24
	} else if l.ABI >= 4 {
		size = 16
	}
	t.Call(unix.SYS_LANDLOCK_CREATE_RULESET, tape.Ptr(t, attr), size, 0).To(tape.RegB)
	for _, r := range l.Rules {
		t.At("landlock rule", string(r.Path))
		rule := &[2]uint64{r.Access, 0}
		addr := tape.Ptr(t, rule)
		c.openGranted(string(r.Path))
		t.Poke(addr+8, tape.RegA)
		t.Call(unix.SYS_LANDLOCK_ADD_RULE, 0, unix.LANDLOCK_RULE_PATH_BENEATH, addr, 0).From(0, tape.RegB)
		t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	}
	if c.p.InPlace != nil {
		c.ownTerminal()
	}
	t.At("entering landlock", "")
	t.Call(unix.SYS_LANDLOCK_RESTRICT_SELF, 0, 0).From(0, tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegB)
	if c.p.InPlace != nil {
		c.checkScope()
	}
}

func (c *builder) seccomp() {
	t := c.T
	s := &c.p.Seccomp
	t.At("loading the system-call filter", s.Rules)
	prog := instructions(s.Program)
	flags := uintptr(0)
	if s.Notify {
		// WAIT_KILLABLE_RECV (5.19): without it a Go program's preemption signals restart a waiting
		// call for ever.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	o := t.Call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, filter(t, prog))
	if s.Notify {
		o.To(tape.RegListener)
		c.hand(plan.FdSeccomp, tape.RegListener)
	}
}

func instructions(list []plan.Insn) []unix.SockFilter {
	prog := make([]unix.SockFilter, len(list))
	for i, in := range list {
		prog[i] = unix.SockFilter{Code: in.Code, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	return prog
}

// compileStart makes the tape that starts the program from process 1, or that process 1 becomes it.
func compileStart(t *tape.Tape, p *plan.Plan) {
	t.At("waiting for sbx", "")
	steps.AwaitGo(t, stage.FdSock)
	if p.Bubblewrap != nil {
		compileBubblewrapStart(t, p)
		return
	}
	pr := &p.Process
	innerDomain(t, p)
	t.At("starting", "process group")
	t.Call(unix.SYS_SETPGID, 0, 0).May(uint16(unix.EPERM))
	if pr.TTY && !p.Background() {
		pid := t.Buf(8)
		t.Call(unix.SYS_GETPID).To(tape.RegA)
		t.Poke(pid, tape.RegA)
		for i, kind := range p.Stdio {
			if kind == plan.Pty {
				t.Call(unix.SYS_IOCTL, uintptr(stage.FdStdio+i), unix.TIOCSPGRP, pid).May(tape.AnyErrno)
				break
			}
		}
	}
	plain := t.Buf(32)
	if !p.Namespaces.User { // sbx-helper ignores them
		t.At("starting", "signals")
		for _, s := range [...]unix.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} {
			t.Call(unix.SYS_RT_SIGACTION, uintptr(s), plain, 0, 8)
		}
	}
	if p.Background() { // a shell's substitution ignores them: then reading would fail instead of stopping the program
		t.At("starting", "signals")
		t.Call(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTTIN), plain, 0, 8)
		t.Call(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTTOU), plain, 0, 8)
	}
	for i := range p.Stdio {
		t.At("passing descriptor", fmt.Sprint(i))
		t.Call(unix.SYS_DUP3, uintptr(stage.FdStdio+i), uintptr(i), 0)
	}
	t.At("entering directory", string(pr.Dir))
	t.Call(unix.SYS_CHDIR, t.Str(string(pr.Dir)))
	t.At("starting", "signal mask")
	t.Call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, tape.Ptr(t, new([1]uint64)), 0, 8)
	t.At(steps.ExecStep, string(pr.Path))
	t.Call(unix.SYS_EXECVE, t.Str(string(pr.Path)), steps.Vector(t, plan.StringsOf(pr.Argv)),
		steps.Vector(t, plan.StringsOf(pr.Env)))
}
