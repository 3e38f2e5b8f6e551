package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Bounds of a plan. They are far above what real sandboxes need and keep a hostile plan small.
const (
	maxMounts = 8192
	maxPath   = 4095
)

// Devices are the only nodes that a Device bind may show.
var deviceNames = [...]string{"null", "zero", "full", "random", "urandom", "tty", "kvm", "fuse", "net/tun"}

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
	case Tmpfs, Dir, File, Proc, Devpts, Mqueue, Mask:
		return nil
	case Protect, Remount, Fuse:
		return needAccess(m.Access)
	case Symlink:
		if m.Source == "" || len(m.Source) > maxPath || strings.IndexByte(string(m.Source), 0) >= 0 {
			return fmt.Errorf("link text %q", m.Source)
		}
		return nil
	case Bind:
		device, ok := strings.CutPrefix(string(m.Source), "/dev/")
		switch {
		case !isPath(m.Source):
			return fmt.Errorf("source: %q is not an absolute clean path", m.Source)
		case m.Device && (m.NoExec || m.Access != ReadWrite || !ok || !slices.Contains(deviceNames[:], device)):
			return fmt.Errorf("device %q is not one that may be shown", m.Source)
		}
		return needAccess(m.Access)
	case Overlay:
		return m.validateOverlay()
	}
	return fmt.Errorf("unknown kind %q", m.Kind)
}

func (m *Mount) validateOverlay() error {
	layers := m.Lower
	if m.Upper != "" || m.Work != "" {
		layers = append(slices.Clone(layers), m.Upper, m.Work)
	}
	switch {
	case len(m.Lower) == 0 || len(m.Lower) > 64 || (m.Upper == "") != (m.Work == ""):
		return fmt.Errorf("%d lower layers, upper %q, work %q", len(m.Lower), m.Upper, m.Work)
	case !isPath(layers...):
		return fmt.Errorf("layer: not all of %q are absolute clean paths", layers)
	case slices.ContainsFunc(m.Hide, func(h Bytes) bool { return h == "" || !isPath("/"+h) }):
		return fmt.Errorf("hidden name: not all of %q are relative and clean", m.Hide)
	case m.Upper == "" && len(m.Lower) == 1 && len(m.Hide)+len(m.Files) == 0:
		return fmt.Errorf("one layer is no overlay")
	}
	return needAccess(m.Access)
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
