//go:build linux

package child

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// fdGate holds the context of the root's file system until it is created; overlays, which use the number too, come
// later.
const fdGate = stage.FdSock - 1

// makeGate prepares the FUSE file system of the root and sends the broker both its device and its context. The broker
// creates it, not this process: the kernel then tells the broker's numbers of processes, not those of the new PID
// namespace.
func (c *builder) makeGate() {
	if c.p.Gate == nil {
		return
	}
	t := c.T
	t.At("making fuse", "/")
	c.openFuse()
	t.Call(unix.SYS_DUP3, 0, fdGate, unix.O_CLOEXEC).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	rights := unix.UnixRights(stage.FdLayer, fdGate)
	steps.Send(t, stage.FdSock, stage.Encoded(stage.Message{Kind: stage.EvFuse}), t.Bytes(rights), len(rights))
	t.Call(unix.SYS_CLOSE, stage.FdLayer)
}

// gate waits until the broker has created the root's file system, and leaves its mount in RegRoot.
func (c *builder) gate() {
	t := c.T
	steps.AwaitGo(t, stage.FdSock)
	t.Call(unix.SYS_FSMOUNT, fdGate, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV).To(tape.RegRoot)
	t.Call(unix.SYS_CLOSE, fdGate)
}

// populate makes the kernel know every name of some directories before anything is mounted on one and before anybody
// can wait: the first lookup of a name holds its directory's lock, so that nothing can be waited for in it; a later one
// holds none.
func (c *builder) populate() {
	if c.p.Gate == nil {
		return
	}
	t := c.T
	buf := t.Buf(steps.ListBuffer)
	for i := range c.p.Gate.Dirs {
		d := &c.p.Gate.Dirs[i]
		if !d.List && i > 0 {
			continue
		}
		t.At("listing", string(d.Path))
		rel := strings.TrimPrefix(string(d.Path), "/")
		if rel == "" {
			rel = "."
			// The kernel gives the root to uid 0 until it has asked for its attributes.
			t.Call(unix.SYS_STATX, tape.AtCwd, t.Str(rel), unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, t.StatBuf())
		}
		if d.List {
			steps.List(t, rel, buf)
		}
		if i > 0 {
			continue
		}
		// /bin, /lib64: nearly every program is started through them, and the kernel remembers where they lead
		for _, n := range d.Names {
			if n.Kind == plan.Symlink {
				t.Call(unix.SYS_READLINKAT, tape.AtCwd, t.Str(string(n.Name)), buf, steps.ListBuffer)
			}
		}
	}
}

// Root is the file system of a served root while process 1 builds on it. Process 1 alone has requests then, and whoever
// waits for it answers them: to wake another thread for each takes longer than most of the answers, a tenth of the
// whole start.
type Root struct {
	Fd     int
	Answer func() bool // one request; false: there are no more
	Serve  func()      // the sandbox stands: from now on others answer
}

// ServeRoot is called by the Fuse hook.
func (c *Child) ServeRoot(r Root) { c.root = &r }

// answer answers requests until process 1 has something to say on sock.
func (r *Root) answer(sock int) {
	for r != nil {
		fds := [2]unix.PollFd{{Fd: int32(sock), Events: unix.POLLIN}, {Fd: int32(r.Fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds[:], -1)
		if err == nil && fds[1].Revents != 0 && !r.Answer() {
			return
		}
		if err != unix.EINTR && (err != nil || fds[0].Revents != 0) {
			return
		}
	}
}

// giveRoot is called when the sandbox stands, or will not.
func (c *Child) giveRoot() {
	if c.root != nil {
		c.root.Serve()
		c.root = nil
	}
}

// share lets mount namespaces that the program makes receive what the agent mounts later, and lose what it takes away.
func (c *builder) share() {
	if !slices.Contains(c.p.Fds, plan.FdMountNS) && !c.p.Identity.HasRanges() {
		return
	}
	c.T.At("sharing mounts", "/")
	c.T.Call(unix.SYS_MOUNT, 0, c.T.Str("/"), 0, unix.MS_REC|unix.MS_SHARED, 0)
}

// createGate carries out the broker's part of makeGate: device and context are those that the child sent.
func (c *Child) createGate(device, context int) error {
	defer unix.Close(context)
	err := unix.FsconfigSetString(context, "fd", strconv.Itoa(device))
	if err == nil {
		err = unix.FsconfigCreate(context)
	}
	if err != nil {
		f := &steps.Fault{Step: "making fuse", Object: "/"}
		errors.As(err, &f.Errno)
		return f
	}
	if err := steps.Go(c.sock); err != nil {
		return fmt.Errorf("telling process 1 of its root: %w", err)
	}
	return nil
}

// serveFuse has the FUSE file system served that process 1 has made for the mount at the index. The first is the root,
// which is created here.
func (c *Child) serveFuse(p *plan.Plan, next int, fds []int, hooks Hooks) error {
	if next == len(p.Mounts) {
		return fmt.Errorf("process 1 sent a FUSE descriptor too many")
	}
	if gate := next == 0; len(fds) == 0 || gate != (len(fds) == 2) || hooks.Fuse == nil {
		return fmt.Errorf("nobody serves the FUSE file system at %s", plan.Quote(p.Mounts[next].Target))
	} else if gate {
		if err := c.createGate(fds[0], fds[1]); err != nil {
			unix.Close(fds[0])
			return err
		}
	}
	if err := hooks.Fuse(c, &p.Mounts[next], fds[0]); err != nil {
		return fmt.Errorf("serving %s: %w", plan.Quote(p.Mounts[next].Target), err)
	}
	return nil
}
