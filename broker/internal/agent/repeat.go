//go:build linux

package agent

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Repeat is something that has happened to a name of a file system which the caller serves, and that the kernel is to
// hear of: it tells those who watch only of what is done through it. Whoever serves the file system knows that nothing
// is to be done.
type Repeat struct {
	Root string // where the file system is mounted inside
	What What
	Type uint32 // S_IFMT of what was made or removed
	// Dir and Name, and where it was moved to; directories relative to Root, "." for itself.
	Dir, Name     string
	ToDir, ToName string
}

// What is one of the things that can happen to a name.
type What uint8

// The things that can happen.
const (
	Made What = iota
	Removed
	Moved
	Modified
	Changed // its attributes
	Written // it was closed by somebody who could write
)

const fuseMagic = 0x65735546

// Repeat does it, through a copy of the mount that only the agent holds: it can be written whatever the program's can,
// and nothing is mounted on it.
func (a *Agent) Repeat(r Repeat) error {
	if _, err := cleanRel(r.Root); err != nil {
		return err
	}
	_, err := a.order(func(t *tape.Tape, b *agentBlock) {
		find(t, r.Root, tape.RegA)
		buf := t.Buf(120) // struct statfs
		t.Call(unix.SYS_FSTATFS, 0, buf).From(0, tape.RegA)
		t.Expect64(buf, fuseMagic, uintptr(unix.ESTALE))
		t.Call(unix.SYS_OPEN_TREE, 0, t.Str(""), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH).From(0,
			tape.RegA).To(tape.RegB)
		t.Call(unix.SYS_MOUNT_SETATTR, 0, t.Str(""), unix.AT_EMPTY_PATH,
			tape.Ptr(t, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}), stage.MountAttrSize).From(0, tape.RegB)
		t.Call(unix.SYS_SETNS, fdHostNS, unix.CLONE_NEWNS) // where nothing is a mount point
		within(t, r.Dir, tape.RegC)
		if r.What == Moved {
			within(t, r.ToDir, tape.RegD)
		}
		t.At("repeating", r.Name)
		repeatIt(t, &r)
	})
	return err
}

// within stores a directory of the copy of the mount in register to.
func within(t *tape.Tape, dir string, to uint8) {
	t.At("finding", dir)
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: stage.Resolve | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV}
	t.Call(unix.SYS_OPENAT2, 0, t.Str(dir), tape.Ptr(t, how), unix.SizeofOpenHow).From(0, tape.RegB).To(to)
}

func repeatIt(t *tape.Tape, r *Repeat) {
	name := t.Str(r.Name)
	times := &[2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_NOW}}
	var o *tape.Op
	switch r.What {
	case Made:
		switch r.Type {
		case unix.S_IFDIR:
			o = t.Call(unix.SYS_MKDIRAT, 0, name, 0o700)
		case unix.S_IFLNK:
			t.Call(unix.SYS_SYMLINKAT, t.Str("."), 0, name).From(1, tape.RegC)
			return
		case unix.S_IFIFO, unix.S_IFSOCK:
			o = t.Call(unix.SYS_MKNODAT, 0, name, uintptr(r.Type)|0o600, 0)
		default:
			o = t.Call(unix.SYS_MKNODAT, 0, name, unix.S_IFREG|0o600, 0)
		}
	case Removed:
		flags := uintptr(0)
		if r.Type == unix.S_IFDIR {
			flags = unix.AT_REMOVEDIR
		}
		o = t.Call(unix.SYS_UNLINKAT, 0, name, flags)
	case Moved:
		t.Call(unix.SYS_RENAMEAT2, 0, name, 0, t.Str(r.ToName), 0).From(0, tape.RegC).From(2, tape.RegD)
		return
	case Changed:
		times[0].Nsec = unix.UTIME_NOW
		o = t.Call(unix.SYS_UTIMENSAT, 0, name, tape.Ptr(t, times), unix.AT_SYMLINK_NOFOLLOW)
	case Modified:
		o = t.Call(unix.SYS_UTIMENSAT, 0, name, tape.Ptr(t, times), unix.AT_SYMLINK_NOFOLLOW)
	case Written:
		t.Call(unix.SYS_OPENAT, 0, name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC,
			0).From(0, tape.RegC).To(tape.RegA)
		t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
		return
	}
	o.From(0, tape.RegC)
}
