package plan

import (
	"fmt"
	"path"
	"strings"
)

// Bounds of a plan. They are far above what real sandboxes need and keep a hostile plan small.
const (
	maxMounts = 8192
	maxPath   = 4095
)

// devices are the only nodes that a Device bind may show, with their numbers (Documentation/admin-guide/devices.txt).
var devices = [...]struct {
	path         Bytes
	major, minor uint64
}{{"/dev/null", 1, 3}, {"/dev/zero", 1, 5}, {"/dev/full", 1, 7}, {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
	{"/dev/kvm", 10, 232}, {"/dev/fuse", 10, 229}, {"/dev/net/tun", 10, 200}}

// DeviceNumber returns the number of one of the harmless device nodes, in the two words of statx(2), or 0.
func DeviceNumber(path Bytes) uint64 {
	for _, d := range devices {
		if d.path == path {
			return d.major | d.minor<<32
		}
	}
	return 0
}

func (m *Mount) validate(first bool) error {
	switch {
	case first && (m.Target != "/" || m.Kind != Tmpfs && m.Kind != Bind && m.Kind != Fuse):
		return fmt.Errorf("the first operation must mount the root")
	case !first && (!isPath(m.Target) || m.Target == "/" && m.Kind != Remount):
		return fmt.Errorf("target %q is not an absolute clean path below /", m.Target)
	case m.Access != "" && m.Access != ReadOnly && m.Access != ReadWrite:
		return fmt.Errorf("access %q", m.Access)
	case m.Size < 0 || m.Inodes < 0 || m.Mode&^0o7777 != 0:
		return fmt.Errorf("size %d, inodes %d, mode %#o", m.Size, m.Inodes, m.Mode)
	}
	switch m.Kind {
	case Tmpfs, Dir, File, Proc, Devpts, Mqueue, Mask, Overlay: // for Overlay see validateOverlay: sbx-helper mounts none
		return nil
	case Protect, Remount, Fuse, Judged:
		return needAccess(m.Access)
	case Symlink:
		if m.Source == "" || len(m.Source) > maxPath || strings.IndexByte(string(m.Source), 0) >= 0 {
			return fmt.Errorf("link text %q", m.Source)
		}
		return nil
	case Bind:
		switch {
		case !isPath(m.Source):
			return fmt.Errorf("source: %q is not an absolute clean path", m.Source)
		case m.Device && (m.NoExec || m.Access != ReadWrite || DeviceNumber(m.Source) == 0):
			return fmt.Errorf("device %q is not one that may be shown", m.Source)
		}
		return needAccess(m.Access)
	}
	return fmt.Errorf("unknown kind %q", m.Kind)
}

func needAccess(a Access) error {
	if a == "" {
		return fmt.Errorf("no access given")
	}
	return nil
}

// isPath says whether each of list is an absolute clean path.
func isPath(list ...Bytes) bool {
	for _, b := range list {
		if s := string(b); len(s) > maxPath || !strings.HasPrefix(s, "/") || path.Clean(s) != s || strings.IndexByte(s, 0) >= 0 {
			return false
		}
	}
	return true
}
