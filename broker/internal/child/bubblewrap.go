//go:build linux

package child

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// What is here carries out a plan in bubblewrap's words: the same operations, by a process that keeps the caller's
// descriptors, session and signals, and that becomes the program or waits for everybody.

// Descriptors of such a set-up, beside those of stage. What of the caller's has one of these numbers is moved.
const (
	fdScratch = 32 // a tmpfs below the new root, where files are before they are bound
	fdProc    = 33 // the host's /proc
	fdUsers   = 34 // how many user namespaces there may be
	fdRoots   = 35 // and those after it: the host's whole tree
	fdSync    = stage.FdSock + 1

	FirstOwnFd, LastOwnFd = stage.FdFirst, 39
)

// Steps of a set-up in bubblewrap's words, for whoever words their failure.
const (
	StepNewSession = "making a session"
	StepUserNS     = "making an inner user namespace"
	StepUserNS2    = "entering the inner user namespace"
	StepNoUserNS   = "limiting user namespaces"
	StepCheckUser  = "making one more user namespace"
	StepOpenLock   = "opening lock file"
	StepLock       = "locking"
	StepEnter      = "entering directory"
	StepFilter     = "loading the caller's filter"
)

// compileBubblewrap makes the tape of process 1 up to the point where the program can be started.
func (c *builder) compileBubblewrap(sock int) error {
	t, b := c.T, c.p.Bubblewrap
	t.At("blocking signals", "")
	t.Call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, tape.Ptr(t, &[1]uint64{stage.AllSignals}), 0, 8)
	t.At("setting no_new_privs", "")
	t.Call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	t.Call(unix.SYS_PRCTL, unix.PR_SET_NAME, t.Str("bwrap"), 0, 0, 0)
	t.At("moving descriptors", "")
	t.Call(unix.SYS_DUP3, uintptr(sock), stage.FdSock, unix.O_CLOEXEC)
	t.Call(unix.SYS_UMASK, 0)
	if !b.ForeignMaps {
		netns.Identity(t, c.p.Identity, false, false)
	}
	c.openAhead()
	c.Names()
	if err := c.Mounts(); err != nil {
		return err
	}
	c.Mounted()
	c.Pivot()
	c.innerUserNS()
	if b.Keep == 0 {
		c.Drop()
	} else {
		c.keep(b.Keep)
	}
	if b.Block >= 0 {
		t.At("waiting for descriptor", fmt.Sprint(b.Block))
		t.Call(unix.SYS_READ, uintptr(b.Block), t.Buf(8), 1).May(tape.AnyErrno)
	}
	c.limits()
	greet(t, c.p)
	if b.NewSession {
		t.At(StepNewSession, "")
		t.Call(unix.SYS_SETSID)
	}
	if b.Sync >= 0 && b.Reaper {
		t.At("keeping descriptor", fmt.Sprint(b.Sync))
		t.Call(unix.SYS_DUP3, uintptr(b.Sync), fdSync, unix.O_CLOEXEC)
	}
	t.At("setting the parent-death signal", "") // again: a change of privileges clears it
	t.Call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(c.deathSignal()))
	if b.Keep == 0 {
		t.At("making process 1 undumpable", "")
		t.Call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	c.seccomp()
	t.At("reporting", "ready") // it fails where the broker has ended meanwhile
	steps.Send(t, stage.FdSock, stage.Encoded(stage.Message{Kind: stage.EvReady}), 0, 0)
	return nil
}

func (c *builder) deathSignal() unix.Signal {
	if c.p.Bubblewrap.Outlives {
		return 0
	}
	return unix.SIGKILL
}

// openAhead opens what is needed when the host's files are out of sight.
func (c *builder) openAhead() {
	t, b := c.T, c.p.Bubblewrap
	keep := func(fd uintptr, path string, flags uintptr) {
		t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(path), flags|unix.O_CLOEXEC, 0).To(tape.RegA)
		t.Call(unix.SYS_DUP3, 0, fd, unix.O_CLOEXEC).From(0, tape.RegA)
		t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	}
	if b.Inner || b.NoUserNS {
		t.At("opening", "/proc")
		keep(fdProc, "/proc", unix.O_PATH|unix.O_DIRECTORY)
	}
	if b.NoUserNS {
		t.At(StepNoUserNS, "")
		keep(fdUsers, "/proc/sys/user/max_user_namespaces", unix.O_WRONLY)
	}
	roots := uintptr(0)
	for i := range c.p.Mounts {
		if c.p.Mounts[i].Kind == plan.HostRoot { // the new root will be mounted on it
			t.At("mounting "+string(plan.HostRoot), c.p.Mounts[i].Target)
			t.Call(unix.SYS_OPEN_TREE, tape.AtCwd, t.Str("/"), stage.TreeFlags&^unix.AT_EMPTY_PATH).To(tape.RegA)
			t.Call(unix.SYS_DUP3, 0, fdRoots+roots, unix.O_CLOEXEC).From(0, tape.RegA)
			t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
			roots++
		}
	}
}

// maxRoots is how often a plan may show all of the host's tree below its root.
const maxRoots = LastOwnFd - fdRoots + 1

// hostRoot attaches the next of these.
func (c *builder) hostRoot(m *plan.Mount, rel string) error {
	if c.roots == maxRoots {
		return fmt.Errorf("more than %d times", maxRoots)
	}
	c.T.Call(unix.SYS_DUP, uintptr(fdRoots+c.roots)).To(tape.RegB)
	c.roots++
	c.flag(tape.RegB, m)
	c.Attach(tape.RegB, rel)
	c.Place(rel, true)
	return nil
}

// scratch makes the place where files are before they are bound, on top of the new root: nothing that is walked from
// the host's root or from the working directory leads there.
func (c *builder) scratch() {
	if !slices.ContainsFunc(c.p.Mounts, func(m plan.Mount) bool {
		return m.Kind == plan.Data || m.Kind == plan.TmpOverlay || m.Kind == plan.AskServer
	}) {
		return
	}
	t := c.T
	c.scratched = true
	t.At("making a place for files", "")
	t.Call(unix.SYS_FSOPEN, t.Str("tmpfs"), unix.FSOPEN_CLOEXEC).To(tape.RegA)
	t.Call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_STRING, t.Str("mode"), t.Str("755"), 0).From(0, tape.RegA)
	t.Call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_CMD_CREATE, 0, 0, 0).From(0, tape.RegA)
	t.Call(unix.SYS_FSMOUNT, 0, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV).From(0,
		tape.RegA).To(tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), tape.AtCwd, t.Str("/"), unix.MOVE_MOUNT_F_EMPTY_PATH).From(0, tape.RegB)
	t.Call(unix.SYS_DUP3, 0, fdScratch, unix.O_CLOEXEC).From(0, tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegB)
}

// leaveScratch takes it away again.
func (c *builder) leaveScratch() {
	if c.scratched {
		c.askReady()
		c.T.At("leaving the place for files", "")
		c.T.Call(unix.SYS_UMOUNT2, c.T.Str("/"), unix.MNT_DETACH)
	}
}

// data binds a file of the scratch place, which then has no name any more.
func (c *builder) data(m *plan.Mount, rel string) {
	t := c.T
	name := t.Str("data")
	c.write(fdScratch, name, m)
	t.Call(unix.SYS_OPEN_TREE, fdScratch, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC).To(tape.RegB)
	stage.Setattr(t, tape.RegB, m)
	c.Attach(tape.RegB, rel)
	t.Call(unix.SYS_UNLINKAT, fdScratch, name, 0)
}

// write makes a file of what m holds.
func (c *builder) write(dir, name uintptr, m *plan.Mount) {
	t := c.T
	t.Call(unix.SYS_OPENAT, dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		uintptr(m.Mode)).To(tape.RegA)
	if m.Source != "" {
		t.Call(unix.SYS_WRITE, 0, t.Bytes([]byte(m.Source)), uintptr(len(m.Source))).From(0, tape.RegA).To(tape.RegB)
		t.Want(tape.RegB, uintptr(len(m.Source)), uintptr(unix.ENOSPC))
	}
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
}

// copyFile makes a file in a directory of the sandbox's own.
func (c *builder) copyFile(m *plan.Mount, rel string) error {
	if c.IsForeign(rel) {
		return fmt.Errorf("would be written on the host")
	}
	c.write(tape.AtCwd, c.T.Str(rel), m)
	return nil
}

// devBind is Bind without nodev.
func (c *builder) devBind(m *plan.Mount, rel string) {
	c.detached(m, tape.RegB)
	c.Attach(tape.RegB, rel)
	c.Place(rel, true)
}

// detached leaves a copy of m's source in r, with its devices.
func (c *builder) detached(m *plan.Mount, r uint8) {
	t := c.T
	c.Open(m.Source, tape.RegA)
	t.Call(unix.SYS_OPEN_TREE, 0, t.Str(""), stage.TreeFlags).From(0, tape.RegA).To(r)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	c.flag(r, m)
}

// flag sets the flags of a detached tree, of which Device is to have its devices.
func (c *builder) flag(r uint8, m *plan.Mount) {
	set := stage.MountFlags(m, unix.MOUNT_ATTR_NOSYMFOLLOW)
	if m.Device {
		set &^= unix.MOUNT_ATTR_NODEV
	}
	a := &unix.MountAttr{Attr_set: uint64(set), Propagation: unix.MS_PRIVATE}
	c.T.Call(unix.SYS_MOUNT_SETATTR, 0, c.T.Str(""), unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, tape.Ptr(c.T, a),
		stage.MountAttrSize).From(0, r)
}

// innerUserNS makes a user namespace below that which the mounts belong to: whoever has capabilities in it has none
// over them, nor over how many namespaces there may be.
func (c *builder) innerUserNS() {
	t, b := c.T, c.p.Bubblewrap
	if b.NoUserNS {
		t.At(StepNoUserNS, "")
		t.Call(unix.SYS_WRITE, fdUsers, t.Str("1"), 1)
	}
	if b.Inner || b.NoUserNS {
		t.At(StepUserNS, "")
		t.Call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
		t.Call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		// Else root, whose namespace above is the host's, could not write his own gid_map (user_namespaces(7)).
		t.Call(unix.SYS_OPENAT, fdProc, t.Str("self/setgroups"), unix.O_WRONLY|unix.O_CLOEXEC, 0).To(tape.RegA)
		steps.WriteText(t, "deny")
		for _, m := range [...]struct {
			file string
			id   uint32
			own  uint32
		}{{"self/uid_map", b.InnerUID, c.p.Identity.InsideUID}, {"self/gid_map", b.InnerGID, c.p.Identity.InsideGID}} {
			t.Call(unix.SYS_OPENAT, fdProc, t.Str(m.file), unix.O_WRONLY|unix.O_CLOEXEC, 0).To(tape.RegA)
			steps.WriteText(t, fmt.Sprintf("%d %d 1", m.id, m.own))
		}
	}
	if b.UserNS2 >= 0 {
		t.At(StepUserNS2, "")
		t.Call(unix.SYS_SETNS, uintptr(b.UserNS2), unix.CLONE_NEWUSER)
	}
	if b.CheckNoUserNS {
		t.At(StepCheckUser, "")
		t.Call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER).To(tape.RegA).May(tape.AnyErrno).ElseSkip(1)
		t.Want(tape.RegA, 1, uintptr(unix.EEXIST)) // it is 0, where it was possible
	}
}

// keep gives up every capability that is not in mask.
func (c *builder) keep(mask uint64) {
	t := c.T
	t.At("dropping capabilities", "")
	for n := uintptr(0); n < 64; n++ {
		if mask&(1<<n) == 0 {
			t.Call(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, n, 0, 0, 0).May(uint16(unix.EINVAL))
		}
	}
	inheritable := uint64(0)
	if c.p.Bubblewrap.Ambient {
		inheritable = mask
	}
	capset(t, mask, inheritable)
}

// capset leaves the capabilities of mask permitted and effective.
func capset(t *tape.Tape, mask, inheritable uint64) {
	low, high := uint32(mask), uint32(mask>>32)
	t.Call(unix.SYS_CAPSET, tape.Ptr(t, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}),
		tape.Ptr(t, &[2]unix.CapUserData{{Effective: low, Permitted: low, Inheritable: uint32(inheritable)},
			{Effective: high, Permitted: high, Inheritable: uint32(inheritable >> 32)}}))
}

// compileReaper makes what process 1 does when it has started the program: it keeps nothing but what it is there for.
func compileReaper(t *tape.Tape, p *plan.Plan) {
	b := p.Bubblewrap
	if b.Keep != 0 {
		t.At("dropping capabilities", "")
		capset(t, 0, 0)
	}
	t.At("closing descriptors", "")
	t.Call(unix.SYS_CLOSE_RANGE, 3, stage.FdSock-1, 0)
	last := uintptr(stage.FdSock)
	if b.Sync >= 0 {
		last = fdSync
	}
	t.Call(unix.SYS_CLOSE_RANGE, last+1, uintptr(^uint32(0)), 0)
	for _, l := range b.Locks {
		t.At(StepOpenLock, string(l))
		t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(string(l)), unix.O_RDONLY|unix.O_CLOEXEC, 0).To(tape.RegA)
		t.At(StepLock, string(l))
		t.Call(unix.SYS_FCNTL, 0, unix.F_SETLK, tape.Ptr(t, &unix.Flock_t{Type: unix.F_RDLCK})).From(0, tape.RegA)
	}
}

// compileBubblewrapStart makes the tape that becomes the program.
func compileBubblewrapStart(t *tape.Tape, p *plan.Plan) {
	b, pr := p.Bubblewrap, &p.Process
	for _, f := range b.Moved {
		t.At("passing descriptor", fmt.Sprint(f.Fd))
		t.Call(unix.SYS_DUP3, uintptr(f.At), uintptr(f.Fd), 0)
	}
	t.At("starting", "umask")
	t.Call(unix.SYS_UMASK, uintptr(pr.Umask))
	if b.Reaper {
		t.At("setting the parent-death signal", "")
		sig := uintptr(unix.SIGKILL)
		if b.Outlives {
			sig = 0
		}
		t.Call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, sig)
	}
	for n := uintptr(0); n < 64; n++ {
		if b.Ambient && b.Keep&(1<<n) != 0 {
			t.Call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, n, 0, 0).May(tape.AnyErrno)
		}
	}
	mask := tape.Ptr(t, new([1]uint64))
	argv := steps.Vector(t, plan.StringsOf(pr.Argv))
	env := plan.StringsOf(pr.Env)
	dirs := append([]plan.Bytes{pr.Dir}, b.Dirs...)
	for i, dir := range dirs {
		t.At(StepEnter, string(dir))
		t.Call(unix.SYS_CHDIR, t.Str(string(dir)))
		first := len(t.Ops)
		vector := steps.Vector(t, within(env, string(dir)))
		execute(t, p, argv, vector, mask)
		if i < len(dirs)-1 && !t.Full() {
			t.Ops[first-1].May(tape.AnyErrno).ElseSkip(uint8(len(t.Ops) - first))
		}
	}
}

// within is an environment that says which directory the program is in.
func within(env []string, dir string) []string {
	pwd := "PWD=" + dir
	for i, e := range env {
		if strings.HasPrefix(e, "PWD=") {
			env = slices.Clone(env)
			env[i] = pwd
			return env
		}
	}
	return append(env[:len(env):len(env)], pwd)
}

// execute loads the caller's filters and becomes the first program that can be executed, as execvp(3) does.
func execute(t *tape.Tape, p *plan.Plan, argv, env, mask uintptr) {
	b := p.Bubblewrap
	t.At("starting", "signal mask")
	t.Call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, mask, 0, 8)
	for i, f := range b.Filters {
		t.At(StepFilter, fmt.Sprint(i))
		t.Call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, filter(t, instructions(f)))
	}
	t.At(steps.ExecStep, string(b.Programs[0]))
	names := make([]uintptr, len(b.Programs))
	for i, file := range b.Programs {
		names[i] = t.Str(string(file))
		o := t.Call(unix.SYS_EXECVE, names[i], argv, env)
		o.May(tape.AnyErrno)
		if len(names) == 1 {
			o.May(uint16(unix.ENOEXEC)) // a script that does not say what runs it
		}
	}
	if len(names) == 1 {
		words := append([]string{"/bin/sh", string(b.Programs[0])}, plan.StringsOf(p.Process.Argv[1:])...)
		t.Call(unix.SYS_EXECVE, t.Str(words[0]), steps.Vector(t, words), env)
		return
	}
	for _, name := range names { // the first that is not just missing says why not
		t.Call(unix.SYS_EXECVE, name, argv, env).May(uint16(unix.ENOENT))
	}
	t.Call(unix.SYS_EXECVE, names[0], argv, env)
}

// ReaperFault is why the process that waits for all others has given up, or nil.
func (c *Child) ReaperFault() *steps.Fault {
	if f := c.control.Setup; c.reaper != nil && f.Errno != 0 {
		return steps.FaultAt(c.reaper, f)
	}
	return nil
}

// compileReaper is the rest of compileRest for a plan in bubblewrap's words.
func (c *Child) compileReaper(setup *tape.Tape) error {
	reaper := &tape.Tape{Ops: c.block.reaper[:0], Fixed: true, Arena: c.start.Arena}
	compileReaper(reaper, c.plan)
	if setup.Full() || c.start.Full() || reaper.Full() {
		return stage.ErrPlanTooLarge
	}
	c.asPID1 = !c.plan.Bubblewrap.Reaper
	c.block.load(setup, c.start, c.asPID1, false)
	c.block.prog.remains, c.block.prog.reaper = c.plan.Bubblewrap.Reaper, reaper.Ops
	c.reaper = reaper
	return nil
}
