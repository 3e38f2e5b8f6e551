//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Graft is a host file or tree that is to appear in a running sandbox.
type Graft struct {
	Source, Target string // absolute and clean; no component of either may be a link
	Access         plan.Access
	NoExec         bool
	NoSymFollow    bool
	Dev, Ino       uint64  // identity of the source, where it is known
	On             *Object // what has to be at the target
	Beneath        bool    // it is mounted below that, which may be taken away then; EINVAL before Linux 6.5
	// PID is a process in whose working directory the mount is made, at At; Target is what is mounted there for others. 0:
	// at Target.
	PID int
	At  string
}

// Object is what something is (stat(2)).
type Object struct{ Dev, Ino uint64 }

// walk stores an O_PATH descriptor of p in r. No component may be a link.
func walk(t *tape.Tape, from uintptr, p string, r uint8) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: stage.Resolve}
	t.Call(unix.SYS_OPENAT2, from, t.Str(p), tape.Ptr(t, how), unix.SizeofOpenHow).To(r)
}

// find enters the sandbox, and stores what stands there at target in r.
func find(t *tape.Tape, target string, r uint8) {
	t.At("entering the sandbox", "")
	t.Call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
	t.At("finding", target)
	walk(t, tape.AtCwd, target, r)
}

// copyOf leaves a detached copy of the source in RegB, with its flags.
func copyOf(t *tape.Tape, g *Graft, rel string) {
	t.At(opening, g.Source)
	walk(t, fdHostRoot, rel, tape.RegA)
	if g.Ino != 0 {
		stage.SameObject(t, tape.RegA, g.Dev, g.Ino)
	}
	t.At("copying", g.Source)
	t.Call(unix.SYS_OPEN_TREE, 0, t.Str(""), stage.TreeFlags).From(0, tape.RegA).To(tape.RegB)
	stage.Setattr(t, tape.RegB, &plan.Mount{Access: g.Access, NoExec: g.NoExec, NoSymFollow: g.NoSymFollow})
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
	_, err = a.seeing(func(t *tape.Tape, b *agentBlock) {
		copyOf(t, &g, from)
		if g.PID != 0 {
			t.At("finding", g.Target)
			t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(fmt.Sprintf("/proc/%d/cwd", g.PID)), unix.O_PATH|unix.O_DIRECTORY|
				unix.O_CLOEXEC, 0).To(tape.RegD)
		}
		t.At("entering the sandbox", "")
		t.Call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
		t.At("finding", g.Target)
		if g.PID != 0 {
			walk(t, 0, g.At, tape.RegC)
			t.Ops[len(t.Ops)-1].From(0, tape.RegD)
		} else {
			walk(t, tape.AtCwd, g.Target, tape.RegC)
		}
		if g.On != nil {
			stage.SameObject(t, tape.RegC, g.On.Dev, g.On.Ino)
		}
		flags := uintptr(stage.IntoEmpty)
		if g.Beneath {
			flags |= moveMountBeneath
		}
		t.At("mounting", g.Target)
		t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), 0, t.Str(""), flags).From(0, tape.RegB).From(2, tape.RegC)
	})
	return err
}

// moveMountBeneath is MOVE_MOUNT_BENEATH of linux/mount.h.
const moveMountBeneath = 0x200

// opening is the step that looks at the host.
const opening = "opening"

// seeing is order for what looks at the host. The agent's mounts are a copy of the caller's, which may have gained some
// since: what it does not find as the caller has it, another agent may.
func (a *Agent) seeing(build func(t *tape.Tape, b *agentBlock)) (*os.File, error) {
	was := a.PID()
	f, err := a.order(build)
	var fault *steps.Fault
	if was == 0 || was != a.PID() || !errors.As(err, &fault) || fault.Step != opening ||
		fault.Errno != unix.ESTALE && fault.Errno != unix.ENOENT {
		return f, err
	}
	a.mu.Lock()
	a.end()
	a.mu.Unlock()
	return a.order(build)
}

// Ungraft takes the mount at target away, if what it shows is root; nil: whatever that is. What is open stays open. The
// program may have put a link on the way, or exchanged directories: then another mount has that path.
func (a *Agent) Ungraft(target string, root *Object) error {
	if _, err := cleanRel(target); err != nil {
		return err
	}
	_, err := a.order(func(t *tape.Tape, b *agentBlock) {
		t.At("finding", "/proc/self/fd")
		t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/proc/self/fd"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC,
			0).To(tape.RegD)
		find(t, target, tape.RegC)
		if root != nil {
			stage.SameObject(t, tape.RegC, root.Dev, root.Ino)
		}
		t.At("unmounting", target)
		t.Call(unix.SYS_DUP3, 0, fdUnmounted, unix.O_CLOEXEC).From(0, tape.RegC)
		t.Call(unix.SYS_FCHDIR).From(0, tape.RegD) // umount2(2) takes a path
		t.Call(unix.SYS_UMOUNT2, t.Str(strconv.Itoa(fdUnmounted)), unix.MNT_DETACH)
	})
	return err
}

// Mounted says whether something is mounted at target: EINVAL otherwise (mount_setattr(2)). No mount of a sandbox is
// without the attribute that is set.
func (a *Agent) Mounted(target string) error {
	if _, err := cleanRel(target); err != nil {
		return err
	}
	_, err := a.order(func(t *tape.Tape, b *agentBlock) {
		find(t, target, tape.RegC)
		t.Call(unix.SYS_MOUNT_SETATTR, 0, t.Str(""), unix.AT_EMPTY_PATH,
			tape.Ptr(t, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}), stage.MountAttrSize).From(0, tape.RegC)
	})
	return err
}

// Detach returns a nosuid, nodev copy of the mount of a graft's source.
func (a *Agent) Detach(g Graft) (*os.File, error) {
	from, err := cleanRel(g.Source)
	if err != nil {
		return nil, err
	}
	f, err := a.seeing(func(t *tape.Tape, b *agentBlock) {
		copyOf(t, &g, from)
		b.hand(t, tape.RegB)
	})
	if err == nil && f == nil {
		err = fmt.Errorf("%w: no descriptor came", ErrNoAgent)
	}
	return f, err
}

// Patience is how long an order may take at most.
func (a *Agent) Patience() time.Duration { return agentPatience }
