package stage

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// secureBits forbids that uid 0 or a change of uid ever gives capabilities again, and locks that
// (capabilities(7), "The securebits flags"). KEEP_CAPS stays off and is locked off.
const secureBits = 0xef

const lastCap = 63 // beyond any kernel's; EINVAL ends the list

// confine takes everything away that the set-up needed, reads it back, and loads the filter last.
func (c *compiler) confine() {
	c.privileges()
	c.letGo()
	c.limits()
	c.landlock()
	t := c.t
	t.at("making process 1 undumpable", "")
	t.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if c.ns != nil && c.p.Process.Idle {
		c.ns.greeted(t, c.p) // nothing is started that could do it
	}
	c.seccomp()
}

func (c *compiler) limits() {
	t := c.t
	for i := range c.p.Limits {
		l := &c.p.Limits[i]
		t.at("setting limit", l.Name)
		t.call(unix.SYS_PRLIMIT64, 0, uintptr(l.Resource), ptr(t, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}), 0)
	}
	t.at("leaving the session keyring", "")
	t.call(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0).may(anyErrno)
}

func (c *compiler) privileges() {
	t := c.t
	t.at("dropping capabilities", "")
	for n := uintptr(0); n <= lastCap; n++ {
		t.call(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, n, 0, 0, 0).may(uint16(unix.EINVAL))
	}
	t.call(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
	c.becomeCaller()
	t.call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	header := t.capset(0)

	t.at("verifying that no privilege is left", "")
	eperm := uintptr(unix.EPERM)
	data := t.buf(24)
	t.call(unix.SYS_CAPGET, header, data)
	for i := uintptr(0); i < 24; i += 8 {
		t.expect64(data+i, 0, eperm)
	}
	for n := uintptr(0); n <= unix.CAP_LAST_CAP; n++ {
		t.call(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, n, 0, 0, 0).to(regA).may(uint16(unix.EINVAL)).elseSkip(1)
		t.want(regA, 0, eperm)
	}
	t.call(unix.SYS_PRCTL, unix.PR_GET_SECUREBITS, 0, 0, 0, 0).to(regA)
	t.want(regA, secureBits, eperm)
	t.call(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0).to(regA)
	t.want(regA, 1, eperm)
	c.verifyCaller()
}

// capset leaves the capabilities of mask permitted and effective, and none inheritable. It returns the
// address of the header.
func (t *tape) capset(mask uint64) uintptr {
	header := ptr(t, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3})
	low, high := uint32(mask), uint32(mask>>32)
	t.call(unix.SYS_CAPSET, header, ptr(t, &[2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}))
	return header
}

// landlock adds the second line (landlock(7)). The rules name paths as seen inside, which exist by now.
func (c *compiler) landlock() {
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

func (c *compiler) seccomp() {
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
	o := t.call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, t.filter(prog))
	if s.Notify {
		o.to(regListener)
		c.hand(plan.FdSeccomp, regListener)
	}
}

// compileStart makes the tape that starts the program from process 1, or that process 1 becomes it.
func compileStart(t *tape, p *plan.Plan, ns userNS) {
	pr := &p.Process
	if ns != nil {
		ns.greeted(t, p)
	}
	t.at("starting", "process group")
	t.call(unix.SYS_SETPGID, 0, 0).may(uint16(unix.EPERM))
	if pr.TTY {
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
	t.call(unix.SYS_EXECVE, t.str(string(pr.Path)), t.vector(stringsOf(pr.Argv)), t.vector(stringsOf(pr.Env)))
}

// execStep is the name of the one step whose failure is the program's, not the sandbox's.
const execStep = "executing"

func stringsOf(list []plan.Bytes) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
