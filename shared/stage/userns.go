package stage

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// builder is a compiler that knows all of a plan.
type builder struct {
	*compiler
	p      *plan.Plan
	folder Folder      // what the tape makes on the host itself, if that is not there yet
	cpus   *[16]uint64 // nil: process 1 has its processors
	fuses  int         // FUSE mounts made so far
	rights uintptr     // control message that carries the plan's descriptors
	cmsg   []byte
}

func newBuilder(t *tape, p *plan.Plan) *builder {
	return &builder{compiler: &compiler{s: p.Setup(), t: t}, p: p}
}

func (c *builder) user(std Stdio) error {
	identity(c.t, c.p.Identity, c.p.Namespaces.JoinNet, c.p.Identity.HasRanges())
	c.makeFolder()
	c.makeGate()
	for i, kind := range c.s.Stdio {
		if kind == plan.Reopen {
			if err := c.reopen(std[i], i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *builder) served() error {
	for i := range c.p.Mounts {
		if m := &c.p.Mounts[i]; m.Kind == plan.Fuse && i > 0 {
			if c.fuses == plan.MaxFuse {
				return fmt.Errorf("more than %d FUSE file systems", plan.MaxFuse)
			}
			c.t.at("making fuse", string(m.Target))
			c.makeFuse(m)
		}
	}
	c.fuses = 0
	return nil
}

func (c *builder) mount(m *plan.Mount, rel string) error {
	switch m.Kind {
	case plan.Overlay:
		return c.overlay(m, rel)
	case plan.Judged:
		c.judged(rel)
	default:
		c.fuse(m, rel)
	}
	return nil
}

// judged covers a tree with itself, read-only, and sends the broker what is covered: nobody inside can walk there.
func (c *builder) judged(rel string) {
	t := c.t
	c.openInside(rel, regC)
	t.call(unix.SYS_OPEN_TREE, 0, t.str(""), treeFlags).from(0, regC).to(regB)
	setattr(t, regB, &plan.Mount{Access: plan.ReadOnly})
	t.call(unix.SYS_DUP3, 0, fdLayer, unix.O_CLOEXEC).from(0, regC)
	rights := unix.UnixRights(fdLayer)
	sendmsg(t, fdSock, encoded(message{kind: evTree}), t.bytes(rights), len(rights))
	t.call(unix.SYS_CLOSE, fdLayer)
	t.call(unix.SYS_MOVE_MOUNT, 0, t.str(""), 0, t.str(""), intoEmpty).from(0, regB).from(2, regC)
	t.call(unix.SYS_CLOSE).from(0, regB)
	t.call(unix.SYS_CLOSE).from(0, regC)
}
func (c *builder) root()    { c.gate() }
func (c *builder) listed()  { c.populate() }
func (c *builder) shared()  { c.share() }
func (c *builder) mounted() { c.delegate() }

// bare says whether nothing is at m's place but the empty directory that one operation has made, in the tmpfs of the root: neither a
// mount nor a link on the way, and nothing below.
func (c *builder) bare(m *plan.Mount) bool {
	made := false
	for i := range c.s.Mounts {
		n := &c.s.Mounts[i]
		at, place := string(n.Target), string(m.Target)
		switch {
		case n == m:
			return made
		case i == 0:
			if n.Kind != plan.Tmpfs {
				return false
			}
		case at == place:
			if made || n.Kind != plan.Dir || n.Mode != dirMode {
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
		greet(c.t, c.p)
	}
	if c.cpus != nil {
		c.t.at("giving process 1 its processors back", "")
		c.t.call(unix.SYS_SCHED_SETAFFINITY, 0, uintptr(len(c.cpus)*8), ptr(c.t, c.cpus))
	}
}

func (c *builder) reported() {
	if !greetsEarly(c.p) {
		greet(c.t, c.p)
	}
}

// greetsEarly says that process 1 greets the FUSE file systems, not the program before it starts: where nothing is started, and where the
// broker answers process 1 anyway.
func greetsEarly(p *plan.Plan) bool { return p.Process.Idle || p.Gate != nil }

func (c *builder) named() {
	t := c.t
	c.oom()
	if len(c.p.Controls)+len(c.p.Delegated) > 0 {
		// The first one was made in the broker's group: this one begins at the group that the broker has
		// put process 1 in since.
		t.at("entering", "control group")
		t.call(unix.SYS_UNSHARE, unix.CLONE_NEWCGROUP)
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

// delegate lets the program have control groups below its own: process 1 leaves the topmost of them, which can hand down controllers only
// without processes. The namespace began there, so what lies above can be neither seen nor moved to.
func (c *builder) delegate() {
	if len(c.p.Delegated) == 0 {
		return
	}
	rel := strings.TrimPrefix(plan.CgroupPlace, "/")
	writeFile(c.t, rel+"/"+plan.CgroupLeaf+"/cgroup.procs", "0")
	writeFile(c.t, rel+"/cgroup.subtree_control", "+"+strings.Join(c.p.Delegated, " +"))
}

// clock makes a time namespace. Its offsets take CAP_SYS_TIME.
func (c *builder) clock() {
	c.t.at("making a time namespace", "")
	c.t.call(unix.SYS_UNSHARE, unix.CLONE_NEWTIME)
	off := c.p.Namespaces.TimeOffset
	writeFile(c.t, "/proc/self/timens_offsets", fmt.Sprintf("monotonic %d 0\nboottime %d 0\n", off, off))
}

// oom makes memory pressure end the sandbox before its broker.
func (c *builder) oom() {
	if adj := c.p.Process.OOMAdj; adj > 0 {
		writeFile(c.t, "/proc/self/oom_score_adj", fmt.Sprint(adj))
	}
}

// reopen replaces an inherited regular file by the same file on a read-only mount. The mount, not the
// descriptor, decides what opening it again through /proc/self/fd may do, so a descriptor of the host's
// own mount would let the program write a file that it was only given to read.
func (c *builder) reopen(fd, i int) error {
	t := c.t
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
	t.at("reopening read-only", name)
	c.open(name, regA)
	sameObject(t, regA, st.Dev, st.Ino)
	t.call(unix.SYS_OPEN_TREE, 0, t.str(""), treeFlags).from(0, regA).to(regB)
	t.call(unix.SYS_CLOSE).from(0, regA)
	setattr(t, regB, &plan.Mount{Access: plan.ReadOnly})
	t.call(unix.SYS_DUP3, 0, fdLayer, unix.O_CLOEXEC).from(0, regB)
	t.call(unix.SYS_CLOSE).from(0, regB)
	t.call(unix.SYS_OPENAT, atCwd, t.str(fmt.Sprintf("/proc/self/fd/%d", fdLayer)), unix.O_RDONLY|unix.O_CLOEXEC, 0).to(regA)
	t.call(unix.SYS_CLOSE, fdLayer)
	t.call(unix.SYS_LSEEK, 0, uintptr(offset), unix.SEEK_SET).from(0, regA)
	t.call(unix.SYS_DUP3, 0, uintptr(fdStdio+i), unix.O_CLOEXEC).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
	return nil
}
