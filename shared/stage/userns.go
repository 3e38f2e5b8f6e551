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
	folder Folder  // what the tape makes on the host itself, if that is not there yet
	cpus   *cpuSet // nil: process 1 has its processors
	fuses  int     // FUSE mounts made so far
	rights uintptr // control message that carries the plan's descriptors
	cmsg   []byte
}

func newBuilder(t *tape, p *plan.Plan) *builder {
	return &builder{compiler: &compiler{s: p.Setup(), t: t}, p: p}
}

func (c *builder) user(std Stdio) error {
	c.identity(c.p.Identity.HasRanges())
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
	t.setattr(regB, &plan.Mount{Access: plan.ReadOnly})
	t.call(unix.SYS_DUP3, 0, fdLayer, unix.O_CLOEXEC).from(0, regC)
	rights := unix.UnixRights(fdLayer)
	t.sendmsg(message{kind: evTree}, t.bytes(rights), len(rights))
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
		c.t.greet(c.p)
	}
	if c.cpus != nil {
		c.t.at("giving process 1 its processors back", "")
		c.t.call(unix.SYS_SCHED_SETAFFINITY, 0, uintptr(len(c.cpus)*8), ptr(c.t, c.cpus))
	}
}

func (c *builder) reported() {
	if !greetsEarly(c.p) {
		c.t.greet(c.p)
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
	c.writeFile(rel+"/"+plan.CgroupLeaf+"/cgroup.procs", "0")
	c.writeFile(rel+"/cgroup.subtree_control", "+"+strings.Join(c.p.Delegated, " +"))
}

// clock makes a time namespace. Its offsets take CAP_SYS_TIME.
func (c *builder) clock() {
	c.t.at("making a time namespace", "")
	c.t.call(unix.SYS_UNSHARE, unix.CLONE_NEWTIME)
	off := c.p.Namespaces.TimeOffset
	c.writeFile("/proc/self/timens_offsets", fmt.Sprintf("monotonic %d 0\nboottime %d 0\n", off, off))
}

// identity writes the identity maps of the new user namespace (user_namespaces(7)), or waits until somebody else has.
func (c *builder) identity(wait bool) {
	t, id := c.t, c.p.Identity
	if c.p.Namespaces.JoinNet { // the namespace above has one user, 0
		id.OutsideUID, id.OutsideGID = 0, 0
	}
	// The broker is not dumpable, and neither is its copy; the files of such a process belong to root. This
	// process holds nothing yet, and gives dumpability up again before anything can reach it from inside.
	t.at("making process 1 dumpable for its identity maps", "")
	t.call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	open := func(name string) *op {
		t.at("writing", "/proc/self/"+name)
		return t.call(unix.SYS_OPENAT, atCwd, t.str("/proc/self/"+name), unix.O_WRONLY|unix.O_CLOEXEC, 0).to(regA)
	}
	write := func(name, text string) {
		open(name)
		t.writeText(text)
	}
	if wait {
		c.awaitMaps()
	} else {
		write("setgroups", "deny")
		write("uid_map", fmt.Sprintf("%d %d 1", id.InsideUID, id.OutsideUID))
	}
	// Nobody else may set the map that is left: it can be written once.
	open("projid_map").may(anyErrno).elseSkip(2)
	t.call(unix.SYS_WRITE, 0, t.str("0 0 1"), 5).from(0, regA).may(uint16(unix.EPERM)) // the parent has no such map
	t.call(unix.SYS_CLOSE).from(0, regA)
	if !wait {
		write("gid_map", fmt.Sprintf("%d %d 1", id.InsideGID, id.OutsideGID))
	}
}

func (c *builder) writeFile(path, text string) {
	t := c.t
	t.at("writing", path)
	t.call(unix.SYS_OPENAT, atCwd, t.str(path), unix.O_WRONLY|unix.O_CLOEXEC, 0).to(regA)
	t.writeText(text)
}

// writeText writes text to the file in regA, and closes it.
func (t *tape) writeText(text string) {
	t.call(unix.SYS_WRITE, 0, t.str(text), uintptr(len(text))).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
}

// oom makes memory pressure end the sandbox before its broker.
func (c *builder) oom() {
	if adj := c.p.Process.OOMAdj; adj > 0 {
		c.writeFile("/proc/self/oom_score_adj", fmt.Sprint(adj))
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
	t.sameObject(regA, st.Dev, st.Ino)
	t.call(unix.SYS_OPEN_TREE, 0, t.str(""), treeFlags).from(0, regA).to(regB)
	t.call(unix.SYS_CLOSE).from(0, regA)
	t.setattr(regB, &plan.Mount{Access: plan.ReadOnly})
	t.call(unix.SYS_DUP3, 0, fdLayer, unix.O_CLOEXEC).from(0, regB)
	t.call(unix.SYS_CLOSE).from(0, regB)
	t.call(unix.SYS_OPENAT, atCwd, t.str(fmt.Sprintf("/proc/self/fd/%d", fdLayer)), unix.O_RDONLY|unix.O_CLOEXEC, 0).to(regA)
	t.call(unix.SYS_CLOSE, fdLayer)
	t.call(unix.SYS_LSEEK, 0, uintptr(offset), unix.SEEK_SET).from(0, regA)
	t.call(unix.SYS_DUP3, 0, uintptr(fdStdio+i), unix.O_CLOEXEC).from(0, regA)
	t.call(unix.SYS_CLOSE).from(0, regA)
	return nil
}
