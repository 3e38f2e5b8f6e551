//go:build linux

package child

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// openFuse leaves a FUSE device in FdLayer and a file system context for it in RegA. /dev/fuse is opened here because
// the kernel wants the opener to be of the mounting user namespace.
func (c *builder) openFuse() {
	t := c.T
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/dev/fuse"), unix.O_RDWR|unix.O_CLOEXEC, 0).To(tape.RegA)
	t.Call(unix.SYS_DUP3, 0, stage.FdLayer, unix.O_CLOEXEC).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	t.Call(unix.SYS_FSOPEN, t.Str("fuse"), unix.FSOPEN_CLOEXEC).To(tape.RegA)
	id := c.p.Identity
	for _, kv := range [...][2]string{{"subtype", "sbx"}, {"rootmode", "40755"}, {"user_id", fmt.Sprint(id.InsideUID)},
		{"group_id", fmt.Sprint(id.InsideGID)}} {
		t.Call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_STRING, t.Str(kv[0]), t.Str(kv[1]), 0).From(0, tape.RegA)
	}
	t.Call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_FLAG, t.Str("allow_other"), 0, 0).From(0, tape.RegA)
}

// makeFuse makes a detached FUSE mount and sends its descriptor to the broker, which must be serving
// before anything below it is walked.
func (c *builder) makeFuse(m *plan.Mount) {
	t := c.T
	c.openFuse()
	t.Call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_STRING, t.Str("fd"), t.Str(fmt.Sprint(stage.FdLayer)), 0).From(0,
		tape.RegA)
	t.Call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_CMD_CREATE, 0, 0, 0).From(0, tape.RegA)
	t.Call(unix.SYS_FSMOUNT, 0, unix.FSMOUNT_CLOEXEC, stage.MountFlags(m, unix.MOUNT_ATTR_NOSYMFOLLOW)).From(0,
		tape.RegA).To(tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	rights := unix.UnixRights(stage.FdLayer)
	steps.Send(t, stage.FdSock, stage.Encoded(stage.Message{Kind: stage.EvFuse}), t.Bytes(rights), len(rights))
	t.Call(unix.SYS_CLOSE, stage.FdLayer)
	t.Call(unix.SYS_DUP3, 0, uintptr(stage.FdFuse+c.fuses), unix.O_CLOEXEC).From(0, tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegB)
	c.fuses++
}

// fuse attaches the next FUSE mount.
func (c *builder) fuse(m *plan.Mount, rel string) {
	c.takeFuse()
	c.Attach(tape.RegB, rel)
	c.Place(rel, true)
}

// takeFuse leaves the next FUSE mount in RegB.
func (c *builder) takeFuse() {
	t := c.T
	t.Call(unix.SYS_DUP, uintptr(stage.FdFuse+c.fuses)).To(tape.RegB)
	t.Call(unix.SYS_CLOSE, uintptr(stage.FdFuse+c.fuses))
	c.fuses++
}

// greet has the kernel ask for the attributes of each FUSE file system: until then it gives the root to uid 0, and
// refuses to write to what belongs to nobody inside. Process 1 does it last, because it waits for the broker, which may
// not be serving yet.
func greet(t *tape.Tape, p *plan.Plan) {
	for i := range p.Mounts {
		if m := &p.Mounts[i]; m.Kind == plan.Fuse && i > 0 {
			t.At("greeting", m.Target)
			t.Call(unix.SYS_STATX, tape.AtCwd, t.Str(m.Target), unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS,
				t.StatBuf()).May(tape.AnyErrno)
		}
	}
}
