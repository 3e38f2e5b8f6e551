package stage

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// openFuse leaves a FUSE device in fdLayer and a file system context for it in regA. /dev/fuse is opened here because the kernel
// wants the opener to be of the mounting user namespace.
func (c *builder) openFuse() {
	t := c.t
	t.call(unix.SYS_OPENAT, atCwd, t.str("/dev/fuse"), unix.O_RDWR|unix.O_CLOEXEC, 0).to(regA)
	t.call(unix.SYS_DUP3, 0, fdLayer, unix.O_CLOEXEC).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
	t.call(unix.SYS_FSOPEN, t.str("fuse"), unix.FSOPEN_CLOEXEC).to(regA)
	id := c.p.Identity
	for _, kv := range [...][2]string{{"rootmode", "40755"}, {"user_id", fmt.Sprint(id.InsideUID)}, {"group_id", fmt.Sprint(id.InsideGID)}} {
		t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_STRING, t.str(kv[0]), t.str(kv[1]), 0).from(0, regA)
	}
	t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_FLAG, t.str("allow_other"), 0, 0).from(0, regA)
}

// makeFuse makes a detached FUSE mount and sends its descriptor to the broker, which must be serving
// before anything below it is walked.
func (c *builder) makeFuse(m *plan.Mount) {
	t := c.t
	c.openFuse()
	t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_STRING, t.str("fd"), t.str(fmt.Sprint(fdLayer)), 0).from(0, regA)
	t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_CMD_CREATE, 0, 0, 0).from(0, regA)
	attr := uintptr(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if m.Access == plan.ReadOnly {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	if m.NoExec {
		attr |= unix.MOUNT_ATTR_NOEXEC
	}
	if m.NoSymFollow {
		attr |= unix.MOUNT_ATTR_NOSYMFOLLOW
	}
	t.call(unix.SYS_FSMOUNT, 0, unix.FSMOUNT_CLOEXEC, attr).from(0, regA).to(regB)
	t.call(unix.SYS_CLOSE).from(0, regA)
	rights := unix.UnixRights(fdLayer)
	sendmsg(t, fdSock, encoded(message{kind: evFuse}), t.bytes(rights), len(rights))
	t.call(unix.SYS_CLOSE, fdLayer)
	t.call(unix.SYS_DUP3, 0, uintptr(fdFuse+c.fuses), unix.O_CLOEXEC).from(0, regB)
	t.call(unix.SYS_CLOSE).from(0, regB)
	c.fuses++
}

// fuse attaches the next FUSE mount.
func (c *builder) fuse(m *plan.Mount, rel string) {
	t := c.t
	t.call(unix.SYS_DUP, uintptr(fdFuse+c.fuses)).to(regB)
	t.call(unix.SYS_CLOSE, uintptr(fdFuse+c.fuses))
	c.fuses++
	c.attach(regB, rel)
	c.place(rel, true)
}

// greet has the kernel ask for the attributes of each FUSE file system: until then it gives the root to uid 0, and refuses to write to
// what belongs to nobody inside. Process 1 does it last, because it waits for the broker, which may not be serving yet.
func greet(t *tape, p *plan.Plan) {
	for i := range p.Mounts {
		if m := &p.Mounts[i]; m.Kind == plan.Fuse && i > 0 {
			t.at("greeting", string(m.Target))
			t.call(unix.SYS_STATX, atCwd, t.str(string(m.Target)), unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, t.statBuf()).may(anyErrno)
		}
	}
}
