//go:build linux

package stage

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/plan"
	"sbx.example/sbx/shared/tape"
)

// Descriptors that process 1 keeps. They lie below 32 so that a caller's small RLIMIT_NOFILE is enough,
// and above what the broker has open when it forks.
const (
	FdLayer  = 14 // to 19: overlay layers and other things that must be named in a string
	FdSock   = 20
	fdSignal = 21
	FdStdio  = 22         // to 24
	FdFuse   = 25         // and those after it, where nothing is open any more: FUSE mounts on their way to their places
	fdTether = FdFuse     // of a set-up without a user namespace, which has no FUSE mounts
	fdTarget = FdFuse + 1 // a place to mount on, likewise
	fdTail   = FdFuse + 2 // see Tail, likewise
	fdSlot   = FdFuse + 3 // see Direct, likewise
	FdFirst  = FdLayer
	fdLast   = fdSlot
)

// Stdio are the caller's descriptors for 0, 1 and 2; -1 where the plan does not inherit.
type Stdio [3]int

const AllSignals = ^uint64(0)

// Compiler turns one plan into tapes.
type Compiler struct {
	Setup  *plan.Setup
	T      *tape.Tape
	d      *direct  // the helper's way; nil with a user namespace
	NS     UserNS   // nil without
	placed []placed // what was mounted where
}

// placed is one mount: below a foreign one the files are the host's, and nothing is created there.
type placed struct {
	rel     string
	foreign bool
}

// UserNS is what only a set-up in a user namespace of its own does: identity maps, a clock, what the broker serves. The
// helper's program holds none of it: there nothing makes a builder, so the linker leaves these methods out, and a plan
// that needs them, which the helper's table refuses, would end with an error here as well.
type UserNS interface {
	User(std Stdio) error                  // right after process 1 is on its own
	Named()                                // when the new namespaces have their names
	Served() error                         // FUSE file systems, before their places are there
	Mount(m *plan.Mount, rel string) error // one of them at its place, or an overlay
	Root()                                 // the root's
	Listed()                               // when the root is there
	Shared()                               // when it is the only one
	Mounted()                              // when all is mounted
}

// Build makes the tape of process 1 as far as it takes privileges, to their end.
func (c *Compiler) Build(sock int, std Stdio) error {
	c.Detach(sock, std)
	c.checkTether()
	if c.NS != nil {
		if err := c.NS.User(std); err != nil {
			return err
		}
	}
	c.Names()
	if err := c.Mounts(); err != nil {
		return err
	}
	if c.NS != nil {
		c.NS.Mounted()
	}
	c.Pivot()
	c.Drop()
	c.letGo()
	return nil
}

// Detach takes the child out of the reach of the caller's terminal and descriptors.
func (c *Compiler) Detach(sock int, std Stdio) {
	t := c.T
	mask := tape.Ptr(t, &[1]uint64{AllSignals})
	t.At("blocking signals", "")
	t.Call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, mask, 0, 8)
	t.At("setting the parent-death signal", "")
	t.Call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	t.At("setting no_new_privs", "")
	t.Call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	t.At("making a session", "")
	t.Call(unix.SYS_SETSID).May(uint16(unix.EPERM)) // process 1 of a new PID namespace may lead one already
	t.At("moving descriptors", "")
	t.Call(unix.SYS_DUP3, uintptr(sock), FdSock, unix.O_CLOEXEC)
	if c.d != nil {
		t.Call(unix.SYS_DUP3, uintptr(c.d.tether), fdTether, unix.O_CLOEXEC)
		t.Call(unix.SYS_DUP3, uintptr(c.d.tail), fdTail, unix.O_CLOEXEC)
		t.Call(unix.SYS_DUP3, uintptr(c.d.slot), fdSlot, unix.O_CLOEXEC)
	}
	for i, kind := range c.Setup.Stdio {
		if kind == plan.Inherit || kind == plan.Reopen {
			t.At("passing descriptor", fmt.Sprint(i))
			t.Call(unix.SYS_DUP3, uintptr(std[i]), uintptr(FdStdio+i), unix.O_CLOEXEC)
		}
	}
	// Before anything is opened: a new descriptor must not get a number that is kept for another.
	t.At("closing descriptors", "")
	t.Call(unix.SYS_CLOSE_RANGE, fdLast+1, uintptr(^uint32(0)), 0)
	t.Call(unix.SYS_CLOSE_RANGE, 3, FdSock-1, 0)
	t.At("moving descriptors", "")
	chld := tape.Ptr(t, &[1]uint64{1 << (unix.SIGCHLD - 1)})
	t.Call(unix.SYS_SIGNALFD4, ^uintptr(0), chld, 8, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK).To(tape.RegA)
	t.Call(unix.SYS_DUP3, 0, fdSignal, unix.O_CLOEXEC).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	for i, kind := range c.Setup.Stdio {
		if kind == plan.Null {
			t.At("opening", "/dev/null")
			t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/dev/null"), unix.O_RDWR|unix.O_CLOEXEC, 0).To(tape.RegA)
			t.Call(unix.SYS_DUP3, 0, uintptr(FdStdio+i), unix.O_CLOEXEC).From(0, tape.RegA)
			t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
		}
	}
	// Process 1 keeps none of the caller's: a pipe must see its end although the sandbox stands, and whoever reads the
	// other end of the caller's descriptors hears of their end from the program alone.
	for i := range c.Setup.Stdio {
		t.Call(unix.SYS_DUP3, fdSignal, uintptr(i), unix.O_CLOEXEC)
	}
	t.Call(unix.SYS_UMASK, 0)
}

// Names sets what the other new namespaces start with: host name, loopback.
func (c *Compiler) Names() {
	t := c.T
	if c.Setup.Namespaces.UTS && c.Setup.Hostname != "" {
		t.At("setting host name", string(c.Setup.Hostname))
		t.Call(unix.SYS_SETHOSTNAME, t.Str(string(c.Setup.Hostname)), uintptr(len(c.Setup.Hostname)))
	}
	if c.Setup.Loopback {
		BringUp(t)
	}
	if c.NS != nil {
		c.NS.Named()
	}
	if c.d != nil {
		t.At("dropping the right to set up networks", "")
		capset(t, DirectCaps&^(1<<unix.CAP_NET_ADMIN))
	}
}

// BringUp brings up the loopback of a new network namespace.
func BringUp(t *tape.Tape) {
	t.At("bringing up", "lo")
	ifreq := [40]byte{0: 'l', 1: 'o', 16: unix.IFF_UP | unix.IFF_RUNNING}
	t.Call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0).To(tape.RegA)
	t.Call(unix.SYS_IOCTL, 0, unix.SIOCSIFFLAGS, tape.Ptr(t, &ifreq)).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
}
