//go:build linux

package child

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// What shows a person's yes of what the words of bubblewrap hide. The server of all of it is mounted in the scratch
// place, which nobody walks to when the sandbox stands: the mounts made of it stay.

const (
	askServerName = "asked"
	// AskReady is the name that process 1 looks up in the server when it has built the sandbox: from then on it asks.
	AskReady = "ready"
)

// served says whether an operation mounts a FUSE file system.
func served(k plan.Kind) bool { return k == plan.Fuse || k == plan.AskServer }

// askServer mounts the server.
func (c *builder) askServer() {
	t := c.T
	t.Call(unix.SYS_MKDIRAT, fdScratch, t.Str(askServerName), stage.DirMode)
	c.takeFuse()
	t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), fdScratch, t.Str(askServerName), unix.MOVE_MOUNT_F_EMPTY_PATH).From(0,
		tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegB)
}

// askDir covers a tmpfs with an overlay, whose upper layer lies in the tmpfs: what is made there is the sandbox's own
// and has the tmpfs's bounds.
func (c *builder) askDir(m *plan.Mount, rel string) {
	t := c.T
	c.OpenInside(rel, tape.RegA)
	t.Call(unix.SYS_DUP3, 0, stage.FdLayer, unix.O_CLOEXEC).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	t.Call(unix.SYS_MKDIRAT, stage.FdLayer, t.Str("upper"), uintptr(m.Mode))
	t.Call(unix.SYS_MKDIRAT, stage.FdLayer, t.Str("work"), stage.DirMode)
	opts := fmt.Sprintf("lowerdir=/proc/self/fd/%d/%s/%d,upperdir=/proc/self/fd/%d/upper,"+
		"workdir=/proc/self/fd/%[4]d/work,userxattr", fdScratch, askServerName, c.asked, stage.FdLayer)
	c.asked++
	c.MountOn(rel, t.Str("overlay"), t.Str("overlay"), stage.MountFlags(m, unix.MS_NOSYMFOLLOW), t.Str(opts))
	t.Call(unix.SYS_CLOSE, stage.FdLayer)
	c.Place(rel, false)
}

// askFile binds a file of the server's.
func (c *builder) askFile(m *plan.Mount, rel string) {
	t := c.T
	t.Call(unix.SYS_OPEN_TREE, fdScratch, t.Str(fmt.Sprintf("%s/%d", askServerName, c.asked)),
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC).To(tape.RegB)
	c.asked++
	stage.Setattr(t, tape.RegB, m)
	c.Attach(tape.RegB, rel)
}

// askReady tells the server that the sandbox is built.
func (c *builder) askReady() {
	if c.asked > 0 {
		c.T.Call(unix.SYS_STATX, fdScratch, c.T.Str(askServerName+"/"+AskReady), 0, unix.STATX_BASIC_STATS,
			c.T.StatBuf()).May(tape.AnyErrno)
	}
}

// nextMount returns the index of the first mount from i on of such a kind, or the number of mounts.
func nextMount(p *plan.Plan, i int, is func(plan.Kind) bool) int {
	for i < len(p.Mounts) && !is(p.Mounts[i].Kind) {
		i++
	}
	return i
}

func judged(k plan.Kind) bool { return k == plan.Judged }
