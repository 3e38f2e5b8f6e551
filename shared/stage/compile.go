package stage

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// Descriptors that process 1 keeps. They lie below 32 so that a caller's small RLIMIT_NOFILE is enough,
// and above what the broker has open when it forks.
const (
	fdLayer  = 14 // to 19: overlay layers and other things that must be named in a string
	fdSock   = 20
	fdSignal = 21
	fdStdio  = 22         // to 24
	fdFuse   = 25         // and those after it, where nothing is open any more: FUSE mounts on their way to their places
	fdTether = fdFuse     // of a set-up without a user namespace, which has no FUSE mounts
	fdTarget = fdFuse + 1 // a place to mount on, likewise
	fdTail   = fdFuse + 2 // see Tail, likewise
	fdSlot   = fdFuse + 3 // see Direct, likewise
	fdFirst  = fdLayer
	fdLast   = fdSlot
)

// Stdio are the caller's descriptors for 0, 1 and 2; -1 where the plan does not inherit.
type Stdio [3]int

const allSignals = ^uint64(0)

// compiler turns one plan into tapes.
type compiler struct {
	s      *plan.Setup
	t      *tape
	d      *direct  // the helper's way; nil with a user namespace
	ns     userNS   // nil without
	placed []placed // what was mounted where
}

// placed is one mount: below a foreign one the files are the host's, and nothing is created there.
type placed struct {
	rel     string
	foreign bool
}

// userNS is what only a set-up in a user namespace of its own does: identity maps, a clock, what the broker serves. The helper's
// program holds none of it: there nothing makes a builder, so the linker leaves these methods out, and a plan that needs
// them, which the helper's table refuses, would end with an error here as well.
type userNS interface {
	user(std Stdio) error                  // right after process 1 is on its own
	named()                                // when the new namespaces have their names
	served() error                         // FUSE file systems, before their places are there
	mount(m *plan.Mount, rel string) error // one of them at its place, or an overlay
	root()                                 // the root's
	listed()                               // when the root is there
	shared()                               // when it is the only one
	mounted()                              // when all is mounted
}

// build makes the tape of process 1 as far as it takes privileges, to their end.
func (c *compiler) build(sock int, std Stdio) error {
	c.detach(sock, std)
	c.checkTether()
	if c.ns != nil {
		if err := c.ns.user(std); err != nil {
			return err
		}
	}
	c.names()
	if err := c.mounts(); err != nil {
		return err
	}
	if c.ns != nil {
		c.ns.mounted()
	}
	c.pivot()
	c.privileges()
	c.letGo()
	return nil
}

// detach takes the child out of the reach of the caller's terminal and descriptors.
func (c *compiler) detach(sock int, std Stdio) {
	t := c.t
	mask := ptr(t, &[1]uint64{allSignals})
	t.at("blocking signals", "")
	t.call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, mask, 0, 8)
	t.at("setting the parent-death signal", "")
	t.call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	t.at("setting no_new_privs", "")
	t.call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	t.at("making a session", "")
	t.call(unix.SYS_SETSID).may(uint16(unix.EPERM)) // process 1 of a new PID namespace may lead one already
	t.at("moving descriptors", "")
	t.call(unix.SYS_DUP3, uintptr(sock), fdSock, unix.O_CLOEXEC)
	if c.d != nil {
		t.call(unix.SYS_DUP3, uintptr(c.d.tether), fdTether, unix.O_CLOEXEC)
		t.call(unix.SYS_DUP3, uintptr(c.d.tail), fdTail, unix.O_CLOEXEC)
		t.call(unix.SYS_DUP3, uintptr(c.d.slot), fdSlot, unix.O_CLOEXEC)
	}
	for i, kind := range c.s.Stdio {
		if kind == plan.Inherit || kind == plan.Reopen {
			t.at("passing descriptor", fmt.Sprint(i))
			t.call(unix.SYS_DUP3, uintptr(std[i]), uintptr(fdStdio+i), unix.O_CLOEXEC)
		}
	}
	// Before anything is opened: a new descriptor must not get a number that is kept for another.
	t.at("closing descriptors", "")
	t.call(unix.SYS_CLOSE_RANGE, fdLast+1, uintptr(^uint32(0)), 0)
	t.call(unix.SYS_CLOSE_RANGE, 3, fdSock-1, 0)
	t.at("moving descriptors", "")
	chld := ptr(t, &[1]uint64{1 << (unix.SIGCHLD - 1)})
	t.call(unix.SYS_SIGNALFD4, ^uintptr(0), chld, 8, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK).to(regA)
	t.call(unix.SYS_DUP3, 0, fdSignal, unix.O_CLOEXEC).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
	for i, kind := range c.s.Stdio {
		if kind == plan.Null {
			t.at("opening", "/dev/null")
			t.call(unix.SYS_OPENAT, atCwd, t.str("/dev/null"), unix.O_RDWR|unix.O_CLOEXEC, 0).to(regA)
			t.call(unix.SYS_DUP3, 0, uintptr(fdStdio+i), unix.O_CLOEXEC).from(0, regA)
			t.call(unix.SYS_CLOSE).from(0, regA)
		}
	}
	// Process 1 keeps none of the caller's: a pipe must see its end although the sandbox stands, and whoever reads the
	// other end of the caller's descriptors hears of their end from the program alone.
	for i := range c.s.Stdio {
		t.call(unix.SYS_DUP3, fdSignal, uintptr(i), unix.O_CLOEXEC)
	}
	t.call(unix.SYS_UMASK, 0)
}

// names sets what the other new namespaces start with: host name, loopback.
func (c *compiler) names() {
	t := c.t
	if c.s.Namespaces.UTS && c.s.Hostname != "" {
		t.at("setting host name", string(c.s.Hostname))
		t.call(unix.SYS_SETHOSTNAME, t.str(string(c.s.Hostname)), uintptr(len(c.s.Hostname)))
	}
	if c.s.Loopback {
		bringUp(t)
	}
	if c.ns != nil {
		c.ns.named()
	}
	if c.d != nil {
		t.at("dropping the right to set up networks", "")
		capset(t, DirectCaps&^(1<<unix.CAP_NET_ADMIN))
	}
}

// bringUp brings up the loopback of a new network namespace.
func bringUp(t *tape) {
	t.at("bringing up", "lo")
	ifreq := [40]byte{0: 'l', 1: 'o', 16: unix.IFF_UP | unix.IFF_RUNNING}
	t.call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0).to(regA)
	t.call(unix.SYS_IOCTL, 0, unix.SIOCSIFFLAGS, ptr(t, &ifreq)).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
}
