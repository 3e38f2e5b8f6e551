//go:build linux

package stage

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/plan"
	"sbx.example/sbx/shared/tape"
)

const (
	DirMode       = 0o755
	Resolve       = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	TreeFlags     = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	fromEmpty     = unix.MOVE_MOUNT_F_EMPTY_PATH
	IntoEmpty     = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	MountAttrSize = 32 // struct mount_attr, MOUNT_ATTR_SIZE_VER0
	attrPrefix    = unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
)

// Mounts builds the new root on top of the old one. The process's root stays the host's, so absolute
// paths are the host's and paths relative to the working directory are the sandbox's.
func (c *Compiler) Mounts() error {
	t := c.T
	t.At("making mounts private", "/")
	t.Call(unix.SYS_MOUNT, 0, t.Str("/"), 0, unix.MS_REC|unix.MS_PRIVATE, 0)
	if c.NS != nil { // the broker greets the kernel on each /dev/fuse while the rest of the root is being built
		if err := c.NS.Served(); err != nil {
			return err
		}
	}
	for i := range c.Setup.Mounts {
		if err := c.mount(&c.Setup.Mounts[i], i == 0); err != nil {
			return fmt.Errorf("mount %d (%s %q): %w", i, c.Setup.Mounts[i].Kind, c.Setup.Mounts[i].Target, err)
		}
		if t.Full() {
			return ErrPlanTooLarge
		}
	}
	return nil
}

func (c *Compiler) mount(m *plan.Mount, first bool) error {
	t := c.T
	rel := strings.TrimPrefix(m.Target, "/")
	t.At(verb(m.Kind), m.Target)
	if first {
		return c.root(m)
	}
	switch m.Kind {
	case plan.Dir, plan.File, plan.Symlink:
		return c.create(m, rel)
	case plan.Tmpfs:
		opts := fmt.Sprintf("size=%d,nr_inodes=%d,mode=%o", m.Size, m.Inodes, m.Mode)
		c.MountOn(rel, t.Str("tmpfs"), t.Str("tmpfs"), MountFlags(m, unix.MS_NOSYMFOLLOW), t.Str(opts))
		c.Place(rel, false)
	case plan.Proc:
		c.MountOn(rel, t.Str("proc"), t.Str("proc"), unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, t.Str("hidepid=invisible"))
		c.placeKernels(rel)
	case plan.Devpts:
		c.MountOn(rel, t.Str("devpts"), t.Str("devpts"), unix.MS_NOSUID|unix.MS_NOEXEC, t.Str(terminals))
	case plan.Mqueue:
		c.MountOn(rel, t.Str("mqueue"), t.Str("mqueue"), unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0)
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
		c.OpenInside(rel, tape.RegC)
		t.Call(unix.SYS_MOUNT_SETATTR, 0, t.Str(""), unix.AT_EMPTY_PATH, tape.Ptr(t, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}), MountAttrSize).From(0, tape.RegC)
		t.Call(unix.SYS_CLOSE).From(0, tape.RegC)
	default:
		if c.NS == nil {
			return fmt.Errorf("no such operation")
		}
		return c.NS.Mount(m, rel)
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

// MountFlags are a mount's flags. Those of mount(2) and of mount_setattr(2) have the same numbers, but for the one
// that is given.
func MountFlags(m *plan.Mount, noSymFollow uintptr) uintptr {
	f := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if m.NoExec {
		f |= unix.MS_NOEXEC
	}
	if m.Access == plan.ReadOnly {
		f |= unix.MS_RDONLY
	}
	if m.NoSymFollow {
		f |= noSymFollow
	}
	return f
}

// isForeign says whether the files at rel are the host's: whether the deepest mount above it is one of the host's
// trees. By way of the host's says whether any is: then the host may lead the way to rel elsewhere meanwhile.
func (c *Compiler) isForeign(rel string) (foreign, byWay bool) {
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

// IsForeign says whether the file at rel would be one of the host's.
func (c *Compiler) IsForeign(rel string) bool {
	foreign, _ := c.isForeign(path.Dir(rel))
	return foreign
}

// Place notes that something was mounted at rel.
func (c *Compiler) Place(rel string, foreign bool) { c.placed = append(c.placed, placed{rel, foreign}) }

// create makes a mount point or link in a directory of the sandbox's own. In a tree of the host's it
// would leave something behind there, so that is refused here, whatever the plan says.
func (c *Compiler) create(m *plan.Mount, rel string) error {
	t := c.T
	if foreign, _ := c.isForeign(path.Dir(rel)); foreign {
		return fmt.Errorf("would be created on the host")
	}
	c.within(rel, func(dir uintptr, r uint8, name string) {
		switch m.Kind {
		case plan.Dir:
			t.Call(unix.SYS_MKDIRAT, dir, t.Str(name), uintptr(m.Mode)).From(0, r).May(uint16(unix.EEXIST))
		case plan.File:
			t.Call(unix.SYS_MKNODAT, dir, t.Str(name), uintptr(unix.S_IFREG|m.Mode), 0).From(0, r).May(uint16(unix.EEXIST))
		default:
			t.Call(unix.SYS_SYMLINKAT, t.Str(m.Source), dir, t.Str(name)).From(1, r)
		}
	})
	return nil
}

// root mounts the first file system over "/" and enters it.
func (c *Compiler) root(m *plan.Mount) error {
	t := c.T
	switch m.Kind {
	case plan.Tmpfs:
		t.Call(unix.SYS_FSOPEN, t.Str("tmpfs"), unix.FSOPEN_CLOEXEC).To(tape.RegA)
		for _, kv := range [...][2]string{{"size", fmt.Sprint(m.Size)}, {"nr_inodes", fmt.Sprint(m.Inodes)}, {"mode", fmt.Sprintf("%o", m.Mode)}} {
			t.Call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_SET_STRING, t.Str(kv[0]), t.Str(kv[1]), 0).From(0, tape.RegA)
		}
		t.Call(unix.SYS_FSCONFIG, 0, unix.FSCONFIG_CMD_CREATE, 0, 0, 0).From(0, tape.RegA)
		// Without NOATIME every walk over a link of the root (/lib, /bin) leaves the kernel's fast path to note the time, in
		// vain.
		attr := uintptr(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOATIME)
		if m.NoExec {
			attr |= unix.MOUNT_ATTR_NOEXEC
		}
		t.Call(unix.SYS_FSMOUNT, 0, unix.FSMOUNT_CLOEXEC, attr).From(0, tape.RegA).To(tape.RegRoot)
		t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	case plan.Bind:
		t.Call(unix.SYS_OPEN_TREE, tape.AtCwd, t.Str(m.Source), TreeFlags&^unix.AT_EMPTY_PATH).To(tape.RegRoot)
		Setattr(t, tape.RegRoot, m)
		c.Place("", true)
	default:
		if c.NS == nil {
			return fmt.Errorf("cannot be the root")
		}
		c.NS.Root()
	}
	t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), tape.AtCwd, t.Str("/"), fromEmpty).From(0, tape.RegRoot)
	t.Call(unix.SYS_FCHDIR).From(0, tape.RegRoot)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegRoot)
	if c.NS != nil {
		c.NS.Listed()
	}
	return nil
}

// bind clones the source tree and attaches it. The source is opened without following any link and,
// when the plan knows its identity, compared with it on the descriptor that is then cloned: nothing
// that happens to the path between planning and now can change what is mounted.
func (c *Compiler) bind(m *plan.Mount, rel string) {
	t := c.T
	if m.Device {
		c.node(m, m.Source, rel)
		return
	}
	first := len(t.Ops)
	c.Open(m.Source, tape.RegA)
	c.mustBeOrdinary(tape.RegA)
	if m.Ino != 0 {
		SameObject(t, tape.RegA, m.Dev, m.Ino)
	}
	t.Call(unix.SYS_OPEN_TREE, 0, t.Str(""), TreeFlags).From(0, tape.RegA).To(tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	Setattr(t, tape.RegB, m)
	c.Attach(tape.RegB, rel)
	c.Place(rel, true)
	if m.Optional && !t.Full() { // it is gone: the empty place stays
		t.Ops[first].May(uint16(unix.ENOENT)).ElseSkip(uint8(len(t.Ops) - first - 1))
	}
}

// Open stores an O_PATH descriptor of an absolute host path in r.
func (c *Compiler) Open(p string, r uint8) {
	t := c.T
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: Resolve}
	t.Call(unix.SYS_OPENAT2, tape.AtCwd, t.Str(p), tape.Ptr(t, how), unix.SizeofOpenHow).To(r)
}

// Offsets in struct statx (statx(2)).
const (
	statxIno  = 32
	statxRdev = 128
	statxDev  = 136
)

// statx fills buf with what is known of the object in r, without asking whoever serves it.
func statx(t *tape.Tape, r uint8, buf uintptr) {
	t.Call(unix.SYS_STATX, 0, t.Str(""), unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, unix.STATX_INO|unix.STATX_TYPE, buf).From(0, r)
}

func SameObject(t *tape.Tape, r uint8, dev, ino uint64) {
	buf := t.StatBuf()
	statx(t, r, buf)
	t.Expect64(buf+statxIno, ino, uintptr(unix.ESTALE))
	t.Expect64(buf+statxDev, uint64(unix.Major(dev))|uint64(unix.Minor(dev))<<32, uintptr(unix.ESTALE))
}

// Setattr sets a detached tree's flags, recursively, and makes it private (mount_setattr(2), 5.12).
func Setattr(t *tape.Tape, r uint8, m *plan.Mount) {
	a := &unix.MountAttr{Attr_set: uint64(MountFlags(m, unix.MOUNT_ATTR_NOSYMFOLLOW)), Propagation: unix.MS_PRIVATE}
	t.Call(unix.SYS_MOUNT_SETATTR, 0, t.Str(""), attrPrefix, tape.Ptr(t, a), MountAttrSize).From(0, r)
}

// Attach moves the detached tree in r to rel. In a tree of the host's the target is opened without
// following links first; in our own directories there are none.
func (c *Compiler) Attach(r uint8, rel string) {
	t := c.T
	if _, byWay := c.isForeign(rel); c.d == nil && !byWay {
		t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), tape.AtCwd, t.Str(rel), fromEmpty).From(0, r)
		t.Call(unix.SYS_CLOSE).From(0, r)
		return
	}
	c.OpenInside(rel, tape.RegC)
	t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), 0, t.Str(""), IntoEmpty).From(0, r).From(2, tape.RegC)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegC)
	t.Call(unix.SYS_CLOSE).From(0, r)
}

func (c *Compiler) OpenInside(rel string, r uint8) *tape.Op {
	t := c.T
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: Resolve | unix.RESOLVE_BENEATH}
	return t.Call(unix.SYS_OPENAT2, tape.AtCwd, t.Str(rel), tape.Ptr(t, how), unix.SizeofOpenHow).To(r)
}

// protect covers a tree that is already there with itself, under other flags.
func (c *Compiler) protect(m *plan.Mount, rel string) {
	t := c.T
	o := c.OpenInside(rel, tape.RegC)
	if m.Optional {
		o.May(uint16(unix.ENOENT)).ElseSkip(5)
	}
	t.Call(unix.SYS_OPEN_TREE, 0, t.Str(""), TreeFlags).From(0, tape.RegC).To(tape.RegB)
	Setattr(t, tape.RegB, m)
	t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), 0, t.Str(""), IntoEmpty).From(0, tape.RegB).From(2, tape.RegC)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegC)
}

// Pivot makes the new root the only one (pivot_root(2), "pivot_root(".", ".")").
func (c *Compiler) Pivot() {
	t := c.T
	t.At("setting nosuid", "") // also for devices and what stands for masked files, which are bound by path
	t.Call(unix.SYS_MOUNT_SETATTR, tape.AtCwd, t.Str("."), unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, tape.Ptr(t, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}), MountAttrSize)
	t.At("entering the new root", "")
	t.Call(unix.SYS_PIVOT_ROOT, t.Str("."), t.Str("."))
	t.Call(unix.SYS_UMOUNT2, t.Str("."), unix.MNT_DETACH)
	t.Call(unix.SYS_CHDIR, t.Str("/"))
	if c.NS != nil {
		c.NS.Shared()
	}
}

// terminals are the options of a sandbox's own pseudo-terminals. The kernel has a number of them for the whole machine
// (kernel.pty.max): without max one sandbox could take those of all others, of every user.
const terminals = "newinstance,ptmxmode=0666,mode=0620,max=256"
