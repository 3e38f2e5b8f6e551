package stage

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// Descriptors that process 1 keeps. They lie below 32 so that a caller's small RLIMIT_NOFILE is enough,
// and above what the broker has open when it forks.
const (
	fdLayer  = 14 // to 19: overlay layers and other things that must be named in a string
	fdSock   = 20
	fdSignal = 21
	fdStdio  = 22 // to 24
	fdFuse   = 25 // to 28: FUSE mounts on their way to their places
	maxFuse  = 4
	fdTether = fdFuse     // of a set-up without a user namespace, which has no FUSE mounts
	fdTarget = fdFuse + 1 // a place to mount on, likewise
	fdFirst  = fdLayer
	fdLast   = fdFuse + maxFuse - 1
)

// Stdio are the caller's descriptors for 0, 1 and 2; -1 where the plan does not inherit.
type Stdio [3]int

const allSignals = ^uint64(0)

// compiler turns one plan into tapes.
type compiler struct {
	p      *plan.Plan
	t      *tape
	tether int      // the helper's, see Direct; -1 with a user namespace
	ns     userNS   // nil without
	fuses  int      // FUSE mounts made so far
	opened int      // see mountOn
	placed []placed // what was mounted where
	rights uintptr  // control message that carries the plan's descriptors
	cmsg   []byte
}

// placed is one mount: below a foreign one the files are the host's, and nothing is created there.
type placed struct {
	rel     string
	foreign bool
}

// compileSetup makes the tape of process 1 up to the point where the program can be started.
func compileSetup(t *tape, p *plan.Plan, sock int, std Stdio, tether int, ns userNS) error {
	if p.Namespaces.User != (ns != nil) || p.Namespaces.User == (tether >= 0) {
		return errors.New("the plan is not for this way of carrying it out")
	}
	c := &compiler{p: p, t: t, tether: tether, ns: ns}
	c.detach(sock, std)
	c.checkTether()
	if ns != nil {
		ns.user(c)
	}
	for i, kind := range p.Stdio {
		if kind == plan.Reopen {
			if err := c.reopen(std[i], i); err != nil {
				return err
			}
		}
	}
	c.names()
	if err := c.mounts(); err != nil {
		return err
	}
	if ns != nil {
		ns.mounted(c)
	}
	c.pivot()
	c.terminal()
	c.confine()
	c.ready()
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
	if c.direct() {
		t.call(unix.SYS_DUP3, uintptr(c.tether), fdTether, unix.O_CLOEXEC)
	}
	for i, kind := range c.p.Stdio {
		if kind == plan.Inherit || kind == plan.Reopen {
			t.at("passing descriptor", fmt.Sprint(i))
			t.call(unix.SYS_DUP3, uintptr(std[i]), uintptr(fdStdio+i), unix.O_CLOEXEC)
		}
	}
	// Before anything is opened: a new descriptor must not get a number that is kept for another.
	t.at("closing descriptors", "")
	t.call(unix.SYS_CLOSE_RANGE, fdLast+1, uintptr(^uint32(0)), 0)
	t.call(unix.SYS_CLOSE_RANGE, 3, fdFirst-1, 0)
	t.at("moving descriptors", "")
	chld := ptr(t, &[1]uint64{1 << (unix.SIGCHLD - 1)})
	t.call(unix.SYS_SIGNALFD4, ^uintptr(0), chld, 8, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK).to(regA)
	t.call(unix.SYS_DUP3, 0, fdSignal, unix.O_CLOEXEC).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
	for i, kind := range c.p.Stdio {
		if kind == plan.Null {
			t.at("opening", "/dev/null")
			t.call(unix.SYS_OPENAT, atCwd, t.str("/dev/null"), unix.O_RDWR|unix.O_CLOEXEC, 0).to(regA)
			t.call(unix.SYS_DUP3, 0, uintptr(fdStdio+i), unix.O_CLOEXEC).from(0, regA)
			t.call(unix.SYS_CLOSE).from(0, regA)
		}
	}
	// Process 1 keeps none of the caller's: a pipe must see its end although the sandbox stands.
	t.at("opening", "/dev/null")
	t.call(unix.SYS_OPENAT, atCwd, t.str("/dev/null"), unix.O_RDWR|unix.O_CLOEXEC, 0).to(regA).may(anyErrno).elseSkip(4)
	for i := range uintptr(3) {
		t.call(unix.SYS_DUP3, 0, i, unix.O_CLOEXEC).from(0, regA)
	}
	t.call(unix.SYS_CLOSE).from(0, regA)
	// Whoever reads the other end of the caller's descriptors hears of their end from the program alone.
	for i := range c.p.Stdio {
		t.call(unix.SYS_DUP3, fdSignal, uintptr(i), unix.O_CLOEXEC)
	}
	t.call(unix.SYS_UMASK, 0)
}

// reopen replaces an inherited regular file by the same file on a read-only mount. The mount, not the
// descriptor, decides what opening it again through /proc/self/fd may do, so a descriptor of the host's
// own mount would let the program write a file that it was only given to read.
func (c *compiler) reopen(fd, i int) error {
	t := c.t
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return fmt.Errorf("naming descriptor %d: %w", i, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at descriptor %d: %w", i, err)
	}
	offset, err := unix.Seek(fd, 0, unix.SEEK_CUR)
	if err != nil {
		return fmt.Errorf("reading the position of descriptor %d: %w", i, err)
	}
	t.at("reopening read-only", name)
	c.open(name, regA)
	c.sameObject(regA, st.Dev, st.Ino)
	t.call(unix.SYS_OPEN_TREE, 0, t.str(""), treeFlags).from(0, regA).to(regB)
	t.call(unix.SYS_CLOSE).from(0, regA)
	c.setattr(regB, &plan.Mount{Access: plan.ReadOnly})
	t.call(unix.SYS_DUP3, 0, fdLayer, unix.O_CLOEXEC).from(0, regB)
	t.call(unix.SYS_CLOSE).from(0, regB)
	t.call(unix.SYS_OPENAT, atCwd, t.str(fmt.Sprintf("/proc/self/fd/%d", fdLayer)), unix.O_RDONLY|unix.O_CLOEXEC, 0).to(regA)
	t.call(unix.SYS_CLOSE, fdLayer)
	t.call(unix.SYS_LSEEK, 0, uintptr(offset), unix.SEEK_SET).from(0, regA)
	t.call(unix.SYS_DUP3, 0, uintptr(fdStdio+i), unix.O_CLOEXEC).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
	return nil
}

// identity writes the identity maps of the new user namespace (user_namespaces(7)), or waits until somebody else has.
func (c *compiler) identity(wait bool) {
	id := c.p.Identity
	if c.p.Namespaces.JoinNet { // the namespace above has one user, 0
		id.OutsideUID, id.OutsideGID = 0, 0
	}
	// The broker is not dumpable, and neither is its copy; the files of such a process belong to root. This
	// process holds nothing yet, and gives dumpability up again before anything can reach it from inside.
	c.t.at("making process 1 dumpable for its identity maps", "")
	c.t.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	if wait {
		c.awaitMaps()
	} else {
		c.writeFile("/proc/self/setgroups", "deny")
		c.writeFile("/proc/self/uid_map", fmt.Sprintf("%d %d 1", id.InsideUID, id.OutsideUID))
	}
	// Nobody else may set the map that is left: it can be written once.
	t := c.t
	t.at("writing", "/proc/self/projid_map")
	t.call(unix.SYS_OPENAT, atCwd, t.str("/proc/self/projid_map"), unix.O_WRONLY|unix.O_CLOEXEC, 0).to(regA).may(anyErrno).elseSkip(2)
	t.call(unix.SYS_WRITE, 0, t.str("0 0 1"), 5).from(0, regA).may(uint16(unix.EPERM)) // the parent has no such map
	t.call(unix.SYS_CLOSE).from(0, regA)
	if !wait {
		c.writeFile("/proc/self/gid_map", fmt.Sprintf("%d %d 1", id.InsideGID, id.OutsideGID))
	}
}

func (c *compiler) writeFile(path, text string) {
	t := c.t
	t.at("writing", path)
	t.call(unix.SYS_OPENAT, atCwd, t.str(path), unix.O_WRONLY|unix.O_CLOEXEC, 0).to(regA)
	t.call(unix.SYS_WRITE, 0, t.str(text), uintptr(len(text))).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
}

// oom makes memory pressure end the sandbox before its broker.
func (c *compiler) oom() {
	if adj := c.p.Process.OOMAdj; adj > 0 {
		c.writeFile("/proc/self/oom_score_adj", fmt.Sprint(adj))
	}
}

// names sets what the other new namespaces start with: host name, loopback, clock.
func (c *compiler) names() {
	t := c.t
	if c.ns != nil {
		c.oom()
	}
	if len(c.p.Controls)+len(c.p.Delegated) > 0 {
		// The first one was made in the broker's group: this one begins at the group that the broker has
		// put process 1 in since.
		t.at("entering", "control group")
		t.call(unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)
	}
	if c.p.Namespaces.UTS && c.p.Hostname != "" {
		t.at("setting host name", string(c.p.Hostname))
		t.call(unix.SYS_SETHOSTNAME, t.str(string(c.p.Hostname)), uintptr(len(c.p.Hostname)))
	}
	if c.p.Loopback {
		t.at("bringing up", "lo")
		ifreq := [40]byte{0: 'l', 1: 'o', 16: unix.IFF_UP | unix.IFF_RUNNING}
		t.call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0).to(regA)
		t.call(unix.SYS_IOCTL, 0, unix.SIOCSIFFLAGS, ptr(t, &ifreq)).from(0, regA)
		t.call(unix.SYS_CLOSE).from(0, regA)
	}
	if c.direct() {
		t.at("dropping the right to set up networks", "")
		t.capset(DirectCaps &^ (1 << unix.CAP_NET_ADMIN))
	}
	if c.p.Namespaces.Time {
		c.clock()
	}
	c.prepareRights()
	for _, ns := range [...]struct {
		role plan.FdRole
		file string
	}{{plan.FdNetns, "/proc/self/ns/net"}, {plan.FdUserNS, "/proc/self/ns/user"}, {plan.FdMountNS, "/proc/self/ns/mnt"}} {
		if slices.Contains(c.p.Fds, ns.role) {
			t.at("opening", ns.file)
			t.call(unix.SYS_OPENAT, atCwd, t.str(ns.file), unix.O_RDONLY|unix.O_CLOEXEC, 0).to(regA)
			c.hand(ns.role, regA)
		}
	}
}

// terminal opens the sandbox's own pseudo-terminal and makes it process 1's controlling terminal, so
// that the program's process group has a parent in its session and Ctrl-Z can stop it.
func (c *compiler) terminal() {
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
	for i, kind := range c.p.Stdio {
		if kind == plan.Pty {
			t.call(unix.SYS_DUP3, 0, uintptr(fdStdio+i), unix.O_CLOEXEC).from(0, regA)
		}
	}
	t.call(unix.SYS_CLOSE).from(0, regA)
}

// prepareRights lays out the control message of the ready message (unix(7), SCM_RIGHTS).
func (c *compiler) prepareRights() {
	if len(c.p.Fds) == 0 {
		return
	}
	fds := make([]int, len(c.p.Fds))
	c.cmsg = unix.UnixRights(fds...)
	c.rights = c.t.bytes(c.cmsg)
}

// hand notes register r's descriptor for the role; it must stay open until ready.
func (c *compiler) hand(role plan.FdRole, r uint8) {
	i := slices.Index(c.p.Fds, role)
	c.t.poke(c.rights+uintptr(unix.CmsgLen(0))+uintptr(4*i), r)
}

// ready tells the broker that the set-up is done and hands over the plan's descriptors.
func (c *compiler) ready() {
	t := c.t
	t.at("reporting", "ready")
	t.sendmsg(message{kind: evReady}, c.rights, len(c.cmsg))
	t.at("closing descriptors", "")
	t.call(unix.SYS_CLOSE_RANGE, fdFuse, uintptr(^uint32(0)), 0)
	t.call(unix.SYS_CLOSE_RANGE, 3, fdSock-1, 0)
}
