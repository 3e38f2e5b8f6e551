package stage

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

const (
	dirMode       = 0o755
	resolve       = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	treeFlags     = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	fromEmpty     = unix.MOVE_MOUNT_F_EMPTY_PATH
	intoEmpty     = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	mountAttrSize = 32 // struct mount_attr, MOUNT_ATTR_SIZE_VER0
	attrPrefix    = unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
)

// mounts builds the new root on top of the old one. The process's root stays the host's, so absolute
// paths are the host's and paths relative to the working directory are the sandbox's.
func (c *compiler) mounts() error {
	t := c.t
	t.at("making mounts private", "/")
	t.call(unix.SYS_MOUNT, 0, t.str("/"), 0, unix.MS_REC|unix.MS_PRIVATE, 0)
	if c.ns != nil { // the broker greets the kernel on each /dev/fuse while the rest of the root is being built
		if err := c.ns.served(); err != nil {
			return err
		}
	}
	for i := range c.s.Mounts {
		if err := c.mount(&c.s.Mounts[i], i == 0); err != nil {
			return fmt.Errorf("mount %d (%s %q): %w", i, c.s.Mounts[i].Kind, c.s.Mounts[i].Target, err)
		}
		if t.full() {
			return errPlanTooLarge
		}
	}
	return nil
}

func (c *compiler) mount(m *plan.Mount, first bool) error {
	t := c.t
	rel := strings.TrimPrefix(string(m.Target), "/")
	t.at(verb(m.Kind), string(m.Target))
	if first {
		return c.root(m)
	}
	switch m.Kind {
	case plan.Dir, plan.File, plan.Symlink:
		return c.create(m, rel)
	case plan.Tmpfs:
		opts := fmt.Sprintf("size=%d,nr_inodes=%d,mode=%o", m.Size, m.Inodes, m.Mode)
		c.mountOn(rel, t.str("tmpfs"), t.str("tmpfs"), mountFlags(m), t.str(opts))
		c.place(rel, false)
	case plan.Proc:
		c.mountOn(rel, t.str("proc"), t.str("proc"), unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, t.str("hidepid=invisible"))
		c.placeKernels(rel)
	case plan.Devpts:
		c.mountOn(rel, t.str("devpts"), t.str("devpts"), unix.MS_NOSUID|unix.MS_NOEXEC, t.str("newinstance,ptmxmode=0666,mode=0620"))
	case plan.Mqueue:
		c.mountOn(rel, t.str("mqueue"), t.str("mqueue"), unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0)
		c.placeKernels(rel)
	case plan.Mask:
		c.node(m, "/dev/null", rel)
	case plan.Bind:
		c.bind(m, rel)
	case plan.Protect:
		c.protect(m, rel)
	case plan.Remount:
		if rel == "" {
			rel = "."
		}
		c.openInside(rel, regC)
		t.call(unix.SYS_MOUNT_SETATTR, 0, t.str(""), unix.AT_EMPTY_PATH, ptr(t, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}), mountAttrSize).from(0, regC)
		t.call(unix.SYS_CLOSE).from(0, regC)
	default:
		if m.Kind != plan.Overlay && m.Kind != plan.Fuse && m.Kind != plan.Judged || c.ns == nil {
			return fmt.Errorf("no such operation")
		}
		return c.ns.mount(m, rel)
	}
	return nil
}

func verb(k plan.Kind) string {
	switch k {
	case plan.Dir, plan.File, plan.Symlink:
		return "creating " + string(k)
	case plan.Protect:
		return "protecting"
	case plan.Remount:
		return "remounting"
	case plan.Mask:
		return "masking"
	}
	return "mounting " + string(k)
}

func mountFlags(m *plan.Mount) uintptr {
	f := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if m.NoExec {
		f |= unix.MS_NOEXEC
	}
	if m.Access == plan.ReadOnly {
		f |= unix.MS_RDONLY
	}
	if m.NoSymFollow {
		f |= unix.MS_NOSYMFOLLOW
	}
	return f
}

// isForeign says whether the files at rel are the host's: whether the deepest mount above it is one of the host's
// trees. By way of the host's says whether any is: then the host may lead the way to rel elsewhere meanwhile.
func (c *compiler) isForeign(rel string) (foreign, byWay bool) {
	deepest := -1
	for _, p := range c.placed {
		if rel == p.rel || p.rel == "" || strings.HasPrefix(rel, p.rel+"/") {
			byWay = byWay || p.foreign
			if len(p.rel) >= deepest {
				deepest, foreign = len(p.rel), p.foreign
			}
		}
	}
	return foreign, byWay
}

// place notes that something was mounted at rel.
func (c *compiler) place(rel string, foreign bool) { c.placed = append(c.placed, placed{rel, foreign}) }

// create makes a mount point or link in a directory of the sandbox's own. In a tree of the host's it
// would leave something behind there, so that is refused here, whatever the plan says.
func (c *compiler) create(m *plan.Mount, rel string) error {
	t := c.t
	if foreign, _ := c.isForeign(path.Dir(rel)); foreign {
		return fmt.Errorf("would be created on the host")
	}
	c.within(rel, func(dir uintptr, r uint8, name string) {
		switch m.Kind {
		case plan.Dir:
			t.call(unix.SYS_MKDIRAT, dir, t.str(name), uintptr(m.Mode)).from(0, r).may(uint16(unix.EEXIST))
		case plan.File:
			t.call(unix.SYS_MKNODAT, dir, t.str(name), uintptr(unix.S_IFREG|m.Mode), 0).from(0, r).may(uint16(unix.EEXIST))
		default:
			t.call(unix.SYS_SYMLINKAT, t.str(string(m.Source)), dir, t.str(name)).from(1, r)
		}
	})
	return nil
}

// root mounts the first file system over "/" and enters it.
func (c *compiler) root(m *plan.Mount) error {
	t := c.t
	switch m.Kind {
	case plan.Tmpfs:
		t.call(unix.SYS_FSOPEN, t.str("tmpfs"), unix.FSOPEN_CLOEXEC).to(regA)
		for _, kv := range [...][2]string{{"size", fmt.Sprint(m.Size)}, {"nr_inodes", fmt.Sprint(m.Inodes)}, {"mode", fmt.Sprintf("%o", m.Mode)}} {
			t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_STRING, t.str(kv[0]), t.str(kv[1]), 0).from(0, regA)
		}
		t.call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_CMD_CREATE, 0, 0, 0).from(0, regA)
		// Without NOATIME every walk over a link of the root (/lib, /bin) leaves the kernel's fast path to note the time, in vain.
		attr := uintptr(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOATIME)
		if m.NoExec {
			attr |= unix.MOUNT_ATTR_NOEXEC
		}
		t.call(unix.SYS_FSMOUNT, 0, unix.FSMOUNT_CLOEXEC, attr).from(0, regA).to(regRoot)
		t.call(unix.SYS_CLOSE).from(0, regA)
	case plan.Bind:
		t.call(unix.SYS_OPEN_TREE, atCwd, t.str(string(m.Source)), treeFlags&^unix.AT_EMPTY_PATH).to(regRoot)
		setattr(t, regRoot, m)
		c.place("", true)
	default:
		if m.Kind != plan.Fuse || c.ns == nil {
			return fmt.Errorf("cannot be the root")
		}
		c.ns.root()
	}
	t.call(unix.SYS_MOVE_MOUNT, 0, t.str(""), atCwd, t.str("/"), fromEmpty).from(0, regRoot)
	t.call(unix.SYS_FCHDIR).from(0, regRoot)
	t.call(unix.SYS_CLOSE).from(0, regRoot)
	if c.ns != nil {
		c.ns.listed()
	}
	return nil
}

// bind clones the source tree and attaches it. The source is opened without following any link and,
// when the plan knows its identity, compared with it on the descriptor that is then cloned: nothing
// that happens to the path between planning and now can change what is mounted.
func (c *compiler) bind(m *plan.Mount, rel string) {
	t := c.t
	if m.Device {
		c.node(m, m.Source, rel)
		return
	}
	first := len(t.ops)
	c.open(string(m.Source), regA)
	c.mustBeOrdinary(regA)
	if m.Ino != 0 {
		sameObject(t, regA, m.Dev, m.Ino)
	}
	t.call(unix.SYS_OPEN_TREE, 0, t.str(""), treeFlags).from(0, regA).to(regB)
	t.call(unix.SYS_CLOSE).from(0, regA)
	setattr(t, regB, m)
	c.attach(regB, rel)
	c.place(rel, true)
	if m.Optional && !t.full() { // it is gone: the empty place stays
		t.ops[first].may(uint16(unix.ENOENT)).elseSkip(uint8(len(t.ops) - first - 1))
	}
}

// open stores an O_PATH descriptor of an absolute host path in r.
func (c *compiler) open(p string, r uint8) {
	t := c.t
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: resolve}
	t.call(unix.SYS_OPENAT2, atCwd, t.str(p), ptr(t, how), unix.SizeofOpenHow).to(r)
}

// Offsets in struct statx (statx(2)).
const (
	statxIno  = 32
	statxRdev = 128
	statxDev  = 136
)

// statx fills buf with what is known of the object in r, without asking whoever serves it.
func statx(t *tape, r uint8, buf uintptr) {
	t.call(unix.SYS_STATX, 0, t.str(""), unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_INO|unix.STATX_TYPE, buf).from(0, r)
}

func sameObject(t *tape, r uint8, dev, ino uint64) {
	buf := t.statBuf()
	statx(t, r, buf)
	t.expect64(buf+statxIno, ino, uintptr(unix.ESTALE))
	t.expect64(buf+statxDev, uint64(unix.Major(dev))|uint64(unix.Minor(dev))<<32, uintptr(unix.ESTALE))
}

// setattr sets a detached tree's flags, recursively, and makes it private (mount_setattr(2), 5.12).
func setattr(t *tape, r uint8, m *plan.Mount) {
	a := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if m.Access == plan.ReadOnly {
		a.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if m.NoExec {
		a.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	if m.NoSymFollow {
		a.Attr_set |= unix.MOUNT_ATTR_NOSYMFOLLOW
	}
	t.call(unix.SYS_MOUNT_SETATTR, 0, t.str(""), attrPrefix, ptr(t, a), mountAttrSize).from(0, r)
}

// attach moves the detached tree in r to rel. In a tree of the host's the target is opened without
// following links first; in our own directories there are none.
func (c *compiler) attach(r uint8, rel string) {
	t := c.t
	if _, byWay := c.isForeign(rel); c.d == nil && !byWay {
		t.call(unix.SYS_MOVE_MOUNT, 0, t.str(""), atCwd, t.str(rel), fromEmpty).from(0, r)
		t.call(unix.SYS_CLOSE).from(0, r)
		return
	}
	c.openInside(rel, regC)
	t.call(unix.SYS_MOVE_MOUNT, 0, t.str(""), 0, t.str(""), intoEmpty).from(0, r).from(2, regC)
	t.call(unix.SYS_CLOSE).from(0, regC)
	t.call(unix.SYS_CLOSE).from(0, r)
}

func (c *compiler) openInside(rel string, r uint8) *op {
	t := c.t
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: resolve | unix.RESOLVE_BENEATH}
	return t.call(unix.SYS_OPENAT2, atCwd, t.str(rel), ptr(t, how), unix.SizeofOpenHow).to(r)
}

// protect covers a tree that is already there with itself, under other flags.
func (c *compiler) protect(m *plan.Mount, rel string) {
	t := c.t
	o := c.openInside(rel, regC)
	if m.Optional {
		o.may(uint16(unix.ENOENT)).elseSkip(5)
	}
	t.call(unix.SYS_OPEN_TREE, 0, t.str(""), treeFlags).from(0, regC).to(regB)
	setattr(t, regB, m)
	t.call(unix.SYS_MOVE_MOUNT, 0, t.str(""), 0, t.str(""), intoEmpty).from(0, regB).from(2, regC)
	t.call(unix.SYS_CLOSE).from(0, regB)
	t.call(unix.SYS_CLOSE).from(0, regC)
}

// pivot makes the new root the only one (pivot_root(2), "pivot_root(".", ".")").
func (c *compiler) pivot() {
	t := c.t
	t.at("setting nosuid", "") // also for devices and what stands for masked files, which are bound by path
	t.call(unix.SYS_MOUNT_SETATTR, atCwd, t.str("."), unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, ptr(t, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}), mountAttrSize)
	t.at("entering the new root", "")
	t.call(unix.SYS_PIVOT_ROOT, t.str("."), t.str("."))
	t.call(unix.SYS_UMOUNT2, t.str("."), unix.MNT_DETACH)
	t.call(unix.SYS_CHDIR, t.str("/"))
	if c.ns != nil {
		c.ns.shared()
	}
}
