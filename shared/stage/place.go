package stage

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"
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

// Place makes a spot at target, and the directories that lead to it, on the file system of the sandbox's root, which nobody inside can
// write. What is there already stays. It goes through a copy of that mount which only the agent ever holds, so that no moment comes
// in which the program's own is writable.
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
		_, err := a.order(func(t *tape, b *agentBlock) {
			ownRoot(t, target)
			for i := from; i < to; i++ {
				t.call(unix.SYS_MKDIRAT, 0, t.str(path.Join(parts[:i+1]...)), dirMode).from(0, regB).may(uint16(unix.EEXIST))
			}
			switch {
			case to < dirs || s == SpotDir:
			case s == SpotFile:
				t.call(unix.SYS_MKNODAT, 0, t.str(rel), unix.S_IFREG, 0).from(0, regB).may(uint16(unix.EEXIST))
			default:
				t.call(unix.SYS_SYMLINKAT, t.str(link), 0, t.str(rel)).from(1, regB).may(uint16(unix.EEXIST))
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
		_, err := a.order(func(t *tape, b *agentBlock) {
			ownRoot(t, target)
			t.call(unix.SYS_UNLINKAT, 0, t.str(rel), flags).from(0, regB)
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

// ownRoot enters the sandbox and leaves a writable copy of the mount of its root, without those on it, in regB.
func ownRoot(t *tape, target string) {
	t.at("entering the sandbox", "")
	t.call(unix.SYS_SETNS, fdInsideNS, unix.CLONE_NEWNS)
	t.at("making a place", target)
	t.call(unix.SYS_OPEN_TREE, atCwd, t.str("/"), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC).to(regB)
	t.call(unix.SYS_MOUNT_SETATTR, 0, t.str(""), unix.AT_EMPTY_PATH, ptr(t, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY, Propagation: unix.MS_PRIVATE}), mountAttrSize).from(0, regB)
}
