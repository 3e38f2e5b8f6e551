//go:build linux

package child

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// What is here carries out a plan without namespaces: nothing is mounted, and process 1 is one of the host's. It does
// not end with its broker by a signal, which would leave what it has started to the host: it hears of the broker's end
// by the socket, and ends everything first.

// fdChildren lists the children of process 1. No FUSE file system needs the number there.
const fdChildren = stage.FdFuse

// compileInPlace makes the tape of process 1 up to the point where the program can be started.
func (c *builder) compileInPlace(sock int, std stage.Stdio) {
	t := c.T
	c.Detach(sock, std)
	t.At("leaving the end of the broker to the socket", "")
	t.Call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0)
	t.At("becoming a reaper", "") // of all that lose their parent
	t.Call(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	c.makeFolder()
	c.dumpable()
	c.oom()
	c.prepareRights()
	c.handTrees()
	t.At("opening", "the list of children")
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/proc/thread-self/children"), unix.O_RDONLY|unix.O_CLOEXEC,
		0).To(tape.RegA)
	t.Call(unix.SYS_DUP3, 0, fdChildren, unix.O_CLOEXEC).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	c.dropAll()
	c.finish()
}

// handTrees sends the broker the roots of the trees that it alone writes.
func (c *builder) handTrees() {
	t := c.T
	for i := range c.p.Mounts {
		m := &c.p.Mounts[i]
		if m.Kind != plan.Judged {
			continue
		}
		t.At("opening", m.Target)
		c.Open(m.Target, tape.RegA)
		if m.Ino != 0 {
			stage.SameObject(t, tape.RegA, m.Dev, m.Ino)
		}
		t.Call(unix.SYS_DUP3, 0, stage.FdLayer, unix.O_CLOEXEC).From(0, tape.RegA)
		rights := unix.UnixRights(stage.FdLayer)
		steps.Send(t, stage.FdSock, stage.Encoded(stage.Message{Kind: stage.EvTree}), t.Bytes(rights), len(rights))
		t.Call(unix.SYS_CLOSE, stage.FdLayer)
		t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	}
}

// dropAll gives up every capability. Nobody but who has some can empty the bounding set or lock the securebits, and
// no_new_privs keeps an exec from giving any.
func (c *builder) dropAll() {
	t := c.T
	t.At("dropping capabilities", "")
	for n := uintptr(0); n < 64; n++ {
		t.Call(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, n, 0, 0, 0).May(tape.AnyErrno)
	}
	t.Call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	capset(t, 0, 0)
	t.At("verifying that no privilege is left", "")
	eperm := uintptr(unix.EPERM)
	data := t.Buf(24)
	t.Call(unix.SYS_CAPGET, tape.Ptr(t, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), data)
	for i := uintptr(0); i < 24; i += 8 {
		t.Expect64(data+i, 0, eperm)
	}
	t.Call(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0).To(tape.RegA)
	t.Want(tape.RegA, 1, eperm)
}

// ownTerminal lets the terminal be opened by its name, which it has only got now.
func (c *builder) ownTerminal() {
	l := c.p.Landlock
	const readFile, writeFile, ioctlDev = 1 << 2, 1 << 1, 1 << 15
	for i, kind := range c.Setup.Stdio {
		if kind == plan.Pty {
			rule := &[2]uint64{(readFile | writeFile | ioctlDev) & l.HandledFS, uint64(stage.FdStdio + i)}
			c.T.Call(unix.SYS_LANDLOCK_ADD_RULE, 0, unix.LANDLOCK_RULE_PATH_BENEATH, tape.Ptr(c.T, rule),
				0).From(0, tape.RegB)
			return
		}
	}
}

// checkScope looks whether a signal reaches the broker. If none does, one to all processes reaches those of the sandbox
// alone, which the end of a session relies on.
func (c *builder) checkScope() {
	if !c.p.Scoped() {
		return
	}
	t := c.T
	t.At("looking whether signals leave the sandbox", "")
	t.Call(unix.SYS_GETPPID).To(tape.RegA)
	t.Call(unix.SYS_KILL, 0, 0).From(0, tape.RegA).To(tape.RegB).May(uint16(unix.EPERM)).ElseSkip(1)
	t.Want(tape.RegB, 1, uintptr(unix.EPERM)) // it is 0, where it was possible
}

// innerDomain keeps a program from the process that has started it: a domain below another reaches nothing above.
func innerDomain(t *tape.Tape, p *plan.Plan) {
	l := p.Landlock
	// What bubblewrap starts has its process 1 above, and could reach the one that looks after it.
	below := p.Bwrap != nil && l != nil && l.Scoped&plan.ScopeSignal != 0
	if p.InPlace == nil && !below {
		return
	}
	const makeBlock, refer = 1 << 11, 1 << 13
	handled := uint64(makeBlock) // which is refused in any case: a domain has to handle something
	if below {
		handled = refer // which is refused everywhere where no rule grants it, whatever is handled
	}
	t.At("entering landlock", "")
	size := uintptr(8)
	if l.ABI >= 6 {
		size = 24
	}
	scoped := l.Scoped & plan.ScopeSignal
	t.Call(unix.SYS_LANDLOCK_CREATE_RULESET, tape.Ptr(t, &[3]uint64{handled, 0, scoped}), size, 0).To(tape.RegD)
	if below {
		rule := tape.Ptr(t, &[2]uint64{refer, 0})
		t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/"), unix.O_PATH|unix.O_CLOEXEC, 0).To(tape.RegA)
		t.Poke(rule+8, tape.RegA)
		t.Call(unix.SYS_LANDLOCK_ADD_RULE, 0, unix.LANDLOCK_RULE_PATH_BENEATH, rule, 0).From(0, tape.RegD)
		t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	}
	t.Call(unix.SYS_LANDLOCK_RESTRICT_SELF, 0, 0).From(0, tape.RegD)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegD)
}

// terminalMaker is the device that makes terminals.
func terminalMaker(p *plan.Plan) string {
	if p.InPlace != nil { // the other may be closed to all but root
		return "/dev/ptmx"
	}
	return "/dev/pts/ptmx"
}

// givenTerminal makes the terminal of a program that is started later, and returns the program's side. Inside no rule
// grants a terminal that is made there: by its directory those of the host would be granted.
func (sp *spawned) givenTerminal() (slave *os.File, err error) {
	master, err := os.OpenFile("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("making a terminal: %w", err)
	}
	m := int(master.Fd())
	if err = unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err == nil {
		err = unix.IoctlSetWinsize(m, unix.TIOCSWINSZ, &unix.Winsize{Row: sp.Rows, Col: sp.Cols})
	}
	if err == nil {
		slave, err = Peer(master)
	}
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("making a terminal: %w", err)
	}
	sp.given = master
	return slave, nil
}

// Peer opens the program's side of a terminal, whatever name it has and where (TIOCGPTPEER, ioctl_tty(2)).
func Peer(master *os.File) (*os.File, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, errno
	}
	return os.NewFile(fd, "terminal"), nil
}

// What program.shared says of a signal to all processes.
const (
	everybody = 1 + iota // it reaches those of the sandbox alone
	oneByOne             // it would reach all of the user's, so process 1 sends none
)

// shares is what the loop of process 1 has to know of the PID namespace.
func shares(p *plan.Plan) int64 {
	switch {
	case p.InPlace == nil:
		return 0
	case p.Scoped():
		return everybody
	}
	return oneByOne
}

// openGranted opens what a rule is about, or skips the rule. In place nobody has made the names there: one that has
// become a link since would grant what that leads to.
func (c *builder) openGranted(p string) {
	t := c.T
	if c.p.InPlace == nil {
		t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(p), unix.O_PATH|unix.O_CLOEXEC,
			0).To(tape.RegA).May(uint16(unix.ENOENT)).ElseSkip(3)
		return
	}
	c.Open(p, tape.RegA)
	if !t.Full() {
		t.Ops[len(t.Ops)-1].May(tape.AnyErrno).ElseSkip(3)
	}
}
