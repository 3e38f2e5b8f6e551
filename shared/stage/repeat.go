package stage

import (
	"golang.org/x/sys/unix"
)

// Repeat is something that has happened to a name of a file system which the caller serves, and that the kernel is to hear of: it tells those
// who watch only of what is done through it. Whoever serves the file system knows that nothing is to be done.
type Repeat struct {
	Root string // where the file system is mounted inside
	What What
	// Dir and Name, and where it was moved to; directories relative to Root, "." for itself.
	Dir, Name     string
	ToDir, ToName string
}

// What is one of the things that can happen to a name.
type What uint8

// The things that can happen.
const (
	Made What = iota // a file
	MadeFifo
	MadeSocket
	MadeDir
	MadeLink
	Removed
	RemovedDir
	Moved
	Modified
	Changed // its attributes
	Written // it was closed by somebody who could write
)

const fuseMagic = 0x65735546

// Repeat does it, through a copy of the mount that only the agent holds: it can be written whatever the program's can, and nothing is
// mounted on it.
func (a *Agent) Repeat(r Repeat) error {
	if _, err := cleanRel(r.Root); err != nil {
		return err
	}
	_, err := a.order(func(t *tape, b *agentBlock) {
		t.at("entering the sandbox", "")
		t.call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
		t.at("finding", r.Root)
		walk(t, atCwd, r.Root, regA)
		buf := t.buf(120) // struct statfs
		t.call(unix.SYS_FSTATFS, 0, buf).from(0, regA)
		t.expect64(buf, fuseMagic, uintptr(unix.ESTALE))
		t.call(unix.SYS_OPEN_TREE, 0, t.str(""), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH).from(0, regA).to(regB)
		t.call(unix.SYS_MOUNT_SETATTR, 0, t.str(""), unix.AT_EMPTY_PATH, ptr(t, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}), mountAttrSize).from(0, regB)
		t.call(unix.SYS_SETNS, fdHostNS, unix.CLONE_NEWNS) // where nothing is a mount point
		within(t, r.Dir, regC)
		if r.What == Moved {
			within(t, r.ToDir, regD)
		}
		t.at("repeating", r.Name)
		repeatIt(t, &r)
	})
	return err
}

// within stores a directory of the copy of the mount in register to.
func within(t *tape, dir string, to uint8) {
	t.at("finding", dir)
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: resolve | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV}
	t.call(unix.SYS_OPENAT2, 0, t.str(dir), ptr(t, how), unix.SizeofOpenHow).from(0, regB).to(to)
}

func repeatIt(t *tape, r *Repeat) {
	name, mode := t.str(r.Name), uintptr(unix.S_IFREG)
	times := &[2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_NOW}}
	var o *op
	switch r.What {
	case MadeFifo, MadeSocket, Made:
		if r.What == MadeFifo {
			mode = unix.S_IFIFO
		} else if r.What == MadeSocket {
			mode = unix.S_IFSOCK
		}
		o = t.call(unix.SYS_MKNODAT, 0, name, mode|0o600, 0)
	case MadeDir:
		o = t.call(unix.SYS_MKDIRAT, 0, name, 0o700)
	case MadeLink:
		t.call(unix.SYS_SYMLINKAT, t.str("."), 0, name).from(1, regC)
		return
	case Removed:
		o = t.call(unix.SYS_UNLINKAT, 0, name, 0)
	case RemovedDir:
		o = t.call(unix.SYS_UNLINKAT, 0, name, unix.AT_REMOVEDIR)
	case Moved:
		t.call(unix.SYS_RENAMEAT2, 0, name, 0, t.str(r.ToName), 0).from(0, regC).from(2, regD)
		return
	case Changed:
		times[0].Nsec = unix.UTIME_NOW
		o = t.call(unix.SYS_UTIMENSAT, 0, name, ptr(t, times), unix.AT_SYMLINK_NOFOLLOW)
	case Modified:
		o = t.call(unix.SYS_UTIMENSAT, 0, name, ptr(t, times), unix.AT_SYMLINK_NOFOLLOW)
	case Written:
		t.call(unix.SYS_OPENAT, 0, name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0).from(0, regC).to(regA)
		t.call(unix.SYS_CLOSE).from(0, regA)
		return
	}
	o.from(0, regC)
}
