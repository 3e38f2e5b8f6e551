package stage

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// Graft is a host file or tree that is to appear in a running sandbox.
type Graft struct {
	Source, Target string // absolute and clean; no component of either may be a link
	Access         plan.Access
	NoExec         bool
	NoSymFollow    bool
	Upper, Work    string // for an overlay above Source, with Access rw
	Dev, Ino       uint64 // identity of the source, where it is known
	// PID is a process in whose working directory the mount is made, at At; Target is what is mounted there for others. 0: at Target.
	PID int
	At  string
}

// walk stores an O_PATH descriptor of p in r. No component may be a link.
func walk(t *tape, from uintptr, p string, r uint8) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: resolve}
	t.call(unix.SYS_OPENAT2, from, t.str(p), ptr(t, how), unix.SizeofOpenHow).to(r)
}

// clone leaves a detached copy of the source in regB, with its flags.
func copyOf(t *tape, g *Graft, rel string) {
	t.at("opening", g.Source)
	walk(t, fdHostRoot, rel, regA)
	if g.Ino != 0 {
		sameObject(t, regA, g.Dev, g.Ino)
	}
	t.at("copying", g.Source)
	t.call(unix.SYS_OPEN_TREE, 0, t.str(""), treeFlags).from(0, regA).to(regB)
	setattr(t, regB, &plan.Mount{Access: g.Access, NoExec: g.NoExec, NoSymFollow: g.NoSymFollow})
}

// Graft mounts g and returns when a walk inside reaches it.
func (a *Agent) Graft(g Graft) error {
	from, err := cleanRel(g.Source)
	if err != nil {
		return err
	}
	if _, err := cleanRel(g.Target); err != nil {
		return err
	}
	if g.Access != plan.ReadOnly && g.Access != plan.ReadWrite {
		return fmt.Errorf("ordering the agent: access %q", g.Access)
	}
	_, err = a.seeing(func(t *tape, b *agentBlock) {
		if g.Upper != "" {
			overlayOf(t, &g)
		} else {
			copyOf(t, &g, from)
		}
		if g.PID != 0 {
			t.at("finding", g.Target)
			t.call(unix.SYS_OPENAT, atCwd, t.str(fmt.Sprintf("/proc/%d/cwd", g.PID)), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0).to(regD)
		}
		t.at("entering the sandbox", "")
		t.call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
		t.at("finding", g.Target)
		if g.PID != 0 {
			walk(t, 0, g.At, regC)
			t.ops[len(t.ops)-1].from(0, regD)
		} else {
			walk(t, atCwd, g.Target, regC)
		}
		t.at("mounting", g.Target)
		t.call(unix.SYS_MOVE_MOUNT, 0, t.str(""), 0, t.str(""), intoEmpty).from(0, regB).from(2, regC)
	})
	return err
}

// seeing is order for what looks at the host. The agent's mounts are a copy of the caller's, which may have gained some since: what it
// does not find as the caller has it, another agent may.
func (a *Agent) seeing(build func(t *tape, b *agentBlock)) (*os.File, error) {
	was := a.PID()
	f, err := a.order(build)
	if was == 0 || was != a.PID() || !errors.Is(err, unix.ESTALE) && !errors.Is(err, unix.ENOENT) {
		return f, err
	}
	a.mu.Lock()
	a.end()
	a.mu.Unlock()
	return a.order(build)
}

// layers leaves a detached overlay in regB.
func overlayOf(t *tape, g *Graft) {
	t.at("making overlay", g.Target)
	t.call(unix.SYS_FSOPEN, t.str("overlay"), unix.FSOPEN_CLOEXEC).to(regD)
	for i, l := range [...][2]string{{"lowerdir", g.Source}, {"upperdir", g.Upper}, {"workdir", g.Work}} {
		fd := agentFirst + 40 + i
		t.at("opening", l[1])
		walk(t, fdHostRoot, l[1][1:], regA)
		t.call(unix.SYS_DUP3, 0, uintptr(fd), unix.O_CLOEXEC).from(0, regA)
		t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_STRING, t.str(l[0]), t.str(fmt.Sprintf("/proc/self/fd/%d", fd)), 0).from(0, regD)
	}
	t.at("making overlay", g.Target)
	t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_FLAG, t.str("userxattr"), 0, 0).from(0, regD)
	t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_CMD_CREATE, 0, 0, 0).from(0, regD)
	attr := uintptr(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if g.NoExec {
		attr |= unix.MOUNT_ATTR_NOEXEC
	}
	if g.NoSymFollow {
		attr |= unix.MOUNT_ATTR_NOSYMFOLLOW
	}
	t.call(unix.SYS_FSMOUNT, 0, unix.FSMOUNT_CLOEXEC, attr).from(0, regD).to(regB)
}

// Ungraft takes the mount at target away. What is open stays open.
func (a *Agent) Ungraft(target string) error {
	if _, err := cleanRel(target); err != nil {
		return err
	}
	_, err := a.order(func(t *tape, b *agentBlock) {
		t.at("entering the sandbox", "")
		t.call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
		t.at("unmounting", target)
		t.call(unix.SYS_UMOUNT2, t.str(target), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	})
	return err
}

// Detach returns a nosuid, nodev copy of the mount of a graft's source.
func (a *Agent) Detach(g Graft) (*os.File, error) {
	from, err := cleanRel(g.Source)
	if err != nil {
		return nil, err
	}
	f, err := a.seeing(func(t *tape, b *agentBlock) {
		copyOf(t, &g, from)
		b.hand(t, regB)
	})
	if err == nil && f == nil {
		err = fmt.Errorf("%w: no descriptor came", ErrNoAgent)
	}
	return f, err
}

// Populate lists a directory of the sandbox to its end.
func (a *Agent) Populate(dir string) error {
	if _, err := cleanRel(dir); err != nil {
		return err
	}
	_, err := a.order(func(t *tape, b *agentBlock) {
		t.call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
		t.at("listing", dir)
		list(t, dir, t.buf(listBuffer))
	})
	return err
}

// Patience is how long an order may take at most.
func (a *Agent) Patience() time.Duration { return agentPatience }
