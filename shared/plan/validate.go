package plan

import (
	"fmt"
	"path"
	"strings"
)

// Bounds of a plan. They are far above what real sandboxes need and keep a hostile plan small.
const (
	MaxMounts = 8192
	MaxPath   = 4095
	MaxSize   = 256 << 10 // of a plan in bytes, however it is written
)

// devices are the only nodes that a Device bind may show, with their numbers (Documentation/admin-guide/devices.txt).
var devices = [...]struct {
	path         string
	major, minor uint64
}{{"/dev/null", 1, 3}, {"/dev/zero", 1, 5}, {"/dev/full", 1, 7}, {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
	{"/dev/kvm", 10, 232}, {"/dev/fuse", 10, 229}, {"/dev/net/tun", 10, 200}}

// DeviceNumber returns the number of one of the harmless device nodes, in the two words of statx(2), or 0.
func DeviceNumber(path string) uint64 {
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
	case !first && (!IsPath(m.Target) || m.Target == "/" && m.Kind != Remount):
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
		return NeedAccess(m.Access)
	case Symlink:
		if m.Source == "" || len(m.Source) > MaxPath || strings.IndexByte(m.Source, 0) >= 0 {
			return fmt.Errorf("link text %q", m.Source)
		}
		return nil
	case Bind:
		switch {
		case !IsPath(m.Source):
			return fmt.Errorf("source: %q is not an absolute clean path", m.Source)
		case m.Device && (m.NoExec || m.Access != ReadWrite || DeviceNumber(m.Source) == 0):
			return fmt.Errorf("device %q is not one that may be shown", m.Source)
		}
		return NeedAccess(m.Access)
	}
	return fmt.Errorf("unknown kind %q", m.Kind)
}

// NeedAccess is an error unless there is an access.
func NeedAccess(a Access) error {
	if a == "" {
		return fmt.Errorf("no access given")
	}
	return nil
}

// IsPath says whether each of list is an absolute clean path.
func IsPath(list ...string) bool {
	for _, s := range list {
		if len(s) > MaxPath || !strings.HasPrefix(s, "/") || path.Clean(s) != s || strings.IndexByte(s, 0) >= 0 {
			return false
		}
	}
	return true
}
