//go:build linux

package child

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// builder is a compiler that knows all of a plan.
type builder struct {
	*stage.Compiler
	p         *plan.Plan
	folder    Folder      // what the tape makes on the host itself, if that is not there yet
	cpus      *[16]uint64 // nil: process 1 has its processors
	fuses     int         // FUSE mounts made so far
	scratched bool        // see scratch
	roots     int         // see hostRoot
	layers    int         // upper layers made in the scratch place so far
	asked     int         // see askServer: names of its server used so far
	rights    uintptr     // control message that carries the plan's descriptors
	cmsg      []byte
}

func newBuilder(t *tape.Tape, p *plan.Plan) *builder {
	return &builder{Compiler: &stage.Compiler{Setup: p.Setup(), T: t}, p: p}
}

// Plain says whether a sandbox around this process has no openat2(2), as sbx makes them.
func Plain() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	if err == nil {
		unix.Close(fd)
	}
	return err == unix.ENOSYS
}

// openPlainly has a tape open by openat(2) there. Directories on the way are then not kept from being links: that is no
// way out of the sandbox around this one, which decides what can be opened.
func openPlainly(t *tape.Tape) {
	if !Plain() {
		return
	}
	for i := range t.Ops {
		if o := &t.Ops[i]; o.Nr == unix.SYS_OPENAT2 {
			how := (*unix.OpenHow)(t.Arena.At(o.A[2]))
			o.Nr, o.A[2], o.A[3] = unix.SYS_OPENAT, uintptr(how.Flags), 0
		}
	}
}

func (c *builder) User(std stage.Stdio) error {
	netns.Identity(c.T, c.p.Identity, c.p.Namespaces.JoinNet, c.p.Identity.HasRanges())
	c.makeFolder()
	c.makeGate()
	for i, kind := range c.Setup.Stdio {
		if kind == plan.Reopen {
			if err := c.reopen(std[i], i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *builder) Served() error {
	for i := range c.p.Mounts {
		if m := &c.p.Mounts[i]; served(m.Kind) && i > 0 {
			if c.fuses == plan.MaxFuse {
				return fmt.Errorf("more than %d FUSE file systems", plan.MaxFuse)
			}
			c.T.At("making fuse", m.Target)
			c.makeFuse(m)
		}
	}
	c.fuses = 0
	return nil
}

func (c *builder) Mount(m *plan.Mount, rel string) error {
	switch m.Kind {
	case plan.Overlay, plan.TmpOverlay:
		return c.overlay(m, rel)
	case plan.Judged:
		c.judged(rel)
	case plan.Fuse:
		c.fuse(m, rel)
	case plan.DevBind:
		c.devBind(m, rel)
	case plan.HostRoot:
		return c.hostRoot(m, rel)
	case plan.Data:
		c.data(m, rel)
	case plan.ProcAll:
		c.MountOn(rel, c.T.Str("proc"), c.T.Str("proc"), unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0)
	case plan.Copy:
		return c.copyFile(m, rel)
	case plan.PointDir:
		c.T.Call(unix.SYS_MKDIRAT, tape.AtCwd, c.T.Str(rel), 0o755)
	case plan.PointFile:
		c.T.Call(unix.SYS_MKNODAT, tape.AtCwd, c.T.Str(rel), unix.S_IFREG|0o644, 0)
	case plan.AskServer:
		c.askServer()
	case plan.AskDir:
		c.askDir(m, rel)
	case plan.AskFile:
		c.askFile(m, rel)
	case plan.Chmod:
		c.T.Call(unix.SYS_FCHMODAT, tape.AtCwd, c.T.Str(rel), uintptr(m.Mode))
	default:
		return fmt.Errorf("no such operation")
	}
	return nil
}

// judged covers a tree with itself, read-only, and sends the broker what is covered: nobody inside can walk there.
func (c *builder) judged(rel string) {
	t := c.T
	c.OpenInside(rel, tape.RegC)
	t.Call(unix.SYS_OPEN_TREE, 0, t.Str(""), stage.TreeFlags).From(0, tape.RegC).To(tape.RegB)
	stage.Setattr(t, tape.RegB, &plan.Mount{Access: plan.ReadOnly})
	t.Call(unix.SYS_DUP3, 0, stage.FdLayer, unix.O_CLOEXEC).From(0, tape.RegC)
	rights := unix.UnixRights(stage.FdLayer)
	steps.Send(t, stage.FdSock, stage.Encoded(stage.Message{Kind: stage.EvTree}), t.Bytes(rights), len(rights))
	t.Call(unix.SYS_CLOSE, stage.FdLayer)
	t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), 0, t.Str(""), stage.IntoEmpty).From(0, tape.RegB).From(2, tape.RegC)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegC)
}
func (c *builder) Root() {
	switch m := &c.p.Mounts[0]; m.Kind {
	case plan.DevBind:
		c.detached(m, tape.RegRoot)
		c.Place("", true)
	default: // Fuse, see Setup.Check
		c.gate()
	}
}
func (c *builder) Listed() {
	c.populate()
	c.scratch()
}
func (c *builder) Shared() {
	c.share()
	if slices.Contains(c.p.Fds, plan.FdProc) {
		c.T.At("opening", "/proc")
		c.T.Call(unix.SYS_OPENAT, tape.AtCwd, c.T.Str("/proc"), unix.O_PATH|unix.O_CLOEXEC, 0).To(tape.RegA)
		c.hand(plan.FdProc, tape.RegA)
	}
}
func (c *builder) Mounted() {
	c.delegate()
	c.leaveScratch()
}

// bare says whether nothing is at m's place but the empty directory that one operation has made, in the tmpfs of the
// root: neither a mount nor a link on the way, and nothing below.
func (c *builder) bare(m *plan.Mount) bool {
	made := false
	for i := range c.Setup.Mounts {
		n := &c.Setup.Mounts[i]
		at, place := n.Target, m.Target
		switch {
		case n == m:
			return made
		case i == 0:
			if n.Kind != plan.Tmpfs {
				return false
			}
		case at == place:
			if made || n.Kind != plan.Dir || n.Mode != stage.DirMode {
				return false
			}
			made = true
		case strings.HasPrefix(at, place+"/"), at == "/", strings.HasPrefix(place, at+"/") && n.Kind != plan.Dir:
			return false
		}
	}
	return false
}

func (c *builder) confined() {
	if greetsEarly(c.p) {
		greet(c.T, c.p)
	}
	if c.cpus != nil {
		c.T.At("giving process 1 its processors back", "")
		c.T.Call(unix.SYS_SCHED_SETAFFINITY, 0, uintptr(len(c.cpus)*8), tape.Ptr(c.T, c.cpus))
	}
}

func (c *builder) reported() {
	if !greetsEarly(c.p) {
		greet(c.T, c.p)
	}
}

// greetsEarly says that process 1 greets the FUSE file systems, not the program before it starts: where nothing is
// started, and where the broker answers process 1 anyway.
func greetsEarly(p *plan.Plan) bool { return p.Process.Idle || p.Gate != nil }

func (c *builder) Named() {
	t := c.T
	c.oom()
	c.inotify()
	if len(c.p.Controls)+len(c.p.Delegated) > 0 {
		// The first one was made in the broker's group: this one begins at the group that the broker has
		// put process 1 in since.
		t.At("entering", "control group")
		t.Call(unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)
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
			t.At("opening", ns.file)
			t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(ns.file), unix.O_RDONLY|unix.O_CLOEXEC, 0).To(tape.RegA)
			c.hand(ns.role, tape.RegA)
		}
	}
	c.names()
}

// names makes the sockets at which the broker answers for a sandbox without a network. Their port takes a privilege.
func (c *builder) names() {
	at := netip.AddrPortFrom(netip.MustParseAddr(plan.Resolver), 53)
	for _, s := range [...]struct {
		role plan.FdRole
		netns.Socket
	}{{plan.FdNamesUDP, netns.Socket{Family: unix.AF_INET, Type: unix.SOCK_DGRAM, Bind: at}},
		{plan.FdNamesTCP, netns.Socket{Family: unix.AF_INET, Type: unix.SOCK_STREAM, Bind: at, Backlog: 64}}} {
		if slices.Contains(c.p.Fds, s.role) {
			s.Compile(c.T)
			c.hand(s.role, tape.RegA)
		}
	}
}

// delegate lets the program have control groups below its own: process 1 leaves the topmost of them, which can hand
// down controllers only without processes. The namespace began there, so what lies above can be neither seen nor moved
// to.
func (c *builder) delegate() {
	if len(c.p.Delegated) == 0 {
		return
	}
	rel := strings.TrimPrefix(plan.CgroupPlace, "/")
	steps.WriteFile(c.T, rel+"/"+plan.CgroupLeaf+"/cgroup.procs", "0")
	steps.WriteFile(c.T, rel+"/cgroup.subtree_control", "+"+strings.Join(c.p.Delegated, " +"))
}

// clock makes a time namespace. Its offsets take CAP_SYS_TIME.
func (c *builder) clock() {
	c.T.At("making a time namespace", "")
	c.T.Call(unix.SYS_UNSHARE, unix.CLONE_NEWTIME)
	off := c.p.Namespaces.TimeOffset
	steps.WriteFile(c.T, "/proc/self/timens_offsets", fmt.Sprintf("monotonic %d 0\nboottime %d 0\n", off, off))
}

// oom makes memory pressure end the sandbox before its broker.
func (c *builder) oom() {
	if adj := c.p.Process.OOMAdj; adj > 0 {
		steps.WriteFile(c.T, "/proc/self/oom_score_adj", fmt.Sprint(adj))
	}
}

// inotify bounds what the program takes of what its user may have.
func (c *builder) inotify() {
	for _, x := range [...]struct {
		of  string
		max int
	}{{"instances", c.p.Process.InotifyInstances}, {"watches", c.p.Process.InotifyWatches}} {
		if x.max > 0 {
			steps.WriteFile(c.T, "/proc/sys/user/max_inotify_"+x.of, fmt.Sprint(x.max))
		}
	}
}

// reopen replaces an inherited regular file by the same file on a read-only mount. The mount, not the
// descriptor, decides what opening it again through /proc/self/fd may do, so a descriptor of the host's
// own mount would let the program write a file that it was only given to read.
func (c *builder) reopen(fd, i int) error {
	t := c.T
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return fmt.Errorf("naming descriptor %d: %w", i, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at descriptor %d: %w", i, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("descriptor %d is no regular file", i)
	}
	offset, err := unix.Seek(fd, 0, unix.SEEK_CUR)
	if err != nil {
		return fmt.Errorf("reading the position of descriptor %d: %w", i, err)
	}
	t.At("reopening read-only", name)
	c.Open(name, tape.RegA)
	stage.SameObject(t, tape.RegA, st.Dev, st.Ino)
	t.Call(unix.SYS_OPEN_TREE, 0, t.Str(""), stage.TreeFlags).From(0, tape.RegA).To(tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	stage.Setattr(t, tape.RegB, &plan.Mount{Access: plan.ReadOnly})
	t.Call(unix.SYS_DUP3, 0, stage.FdLayer, unix.O_CLOEXEC).From(0, tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegB)
	t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str(fmt.Sprintf("/proc/self/fd/%d", stage.FdLayer)), unix.O_RDONLY|
		unix.O_CLOEXEC, 0).To(tape.RegA)
	t.Call(unix.SYS_CLOSE, stage.FdLayer)
	t.Call(unix.SYS_LSEEK, 0, uintptr(offset), unix.SEEK_SET).From(0, tape.RegA)
	t.Call(unix.SYS_DUP3, 0, uintptr(stage.FdStdio+i), unix.O_CLOEXEC).From(0, tape.RegA)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	return nil
}
