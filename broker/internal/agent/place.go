//go:build linux

package agent

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Spot is something that Place makes on the sandbox's own root file system.
type Spot uint8

// The three of them.
const (
	SpotDir  Spot = iota
	SpotFile      // empty and without any right
	SpotLink
)

// placeSteps is how many directories one order makes.
const placeSteps = 12

// Place makes a spot at target, and the directories that lead to it, on the file system of the sandbox's root, which
// nobody inside can write. What is there already stays. It goes through a copy of that mount which only the agent ever
// holds, so that no moment comes in which the program's own is writable.
func (a *Agent) Place(target string, s Spot, link string) error {
	rel, err := cleanRel(target)
	if err != nil || rel == "." {
		return err
	}
	parts := strings.Split(rel, "/")
	dirs := len(parts)
	if s != SpotDir {
		dirs--
	}
	for from := 0; ; from += placeSteps {
		to := min(from+placeSteps, dirs)
		_, err := a.order(func(t *tape.Tape, b *agentBlock) {
			ownRoot(t, target)
			for i := from; i < to; i++ {
				t.Call(unix.SYS_MKDIRAT, 0, t.Str(path.Join(parts[:i+1]...)), stage.DirMode).From(0,
					tape.RegB).May(uint16(unix.EEXIST))
			}
			switch {
			case to < dirs || s == SpotDir:
			case s == SpotFile:
				t.Call(unix.SYS_MKNODAT, 0, t.Str(rel), unix.S_IFREG, 0).From(0, tape.RegB).May(uint16(unix.EEXIST))
			default:
				t.Call(unix.SYS_SYMLINKAT, t.Str(link), 0, t.Str(rel)).From(1, tape.RegB).May(uint16(unix.EEXIST))
			}
		})
		if err != nil || to >= dirs {
			return err
		}
	}
}

// Unplace takes a spot away, unless something is mounted on it or made below it.
func (a *Agent) Unplace(target string) error {
	rel, err := cleanRel(target)
	if err != nil {
		return err
	}
	remove := func(flags uintptr) error {
		_, err := a.order(func(t *tape.Tape, b *agentBlock) {
			ownRoot(t, target)
			t.Call(unix.SYS_UNLINKAT, 0, t.Str(rel), flags).From(0, tape.RegB)
		})
		return err
	}
	if err = remove(0); errors.Is(err, unix.EISDIR) {
		err = remove(unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// ownRoot enters the sandbox and leaves a writable copy of the mount of its root, without those on it, in RegB.
func ownRoot(t *tape.Tape, target string) {
	t.At("entering the sandbox", "")
	t.Call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
	t.At("making a place", target)
	t.Call(unix.SYS_OPEN_TREE, tape.AtCwd, t.Str("/"), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC).To(tape.RegB)
	t.Call(unix.SYS_MOUNT_SETATTR, 0, t.Str(""), unix.AT_EMPTY_PATH,
		tape.Ptr(t, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY, Propagation: unix.MS_PRIVATE}),
		stage.MountAttrSize).From(0, tape.RegB)
}
