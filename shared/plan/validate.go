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
	maxArgs   = 16384
	maxInsns  = 4096 // BPF_MAXINSNS
)

// Devices are the only nodes that a Device bind may show.
var deviceNames = [...]string{"null", "zero", "full", "random", "urandom", "tty", "kvm", "fuse", "net/tun"}

// check reports the first thing in p that the interpreter must not be asked to do, whoever asks; see Validate.
func (p *Plan) check() error {
	if p.Version != Version {
		return fmt.Errorf("plan version %d, want %d", p.Version, Version)
	}
	if err := ValidSession(p.Session); err != nil {
		return err
	}
	if len(p.Hostname) > 63 || strings.ContainsAny(string(p.Hostname), "\x00/\n") {
		return fmt.Errorf("host name %s", p.Hostname.Quote())
	}
	if len(p.Mounts) == 0 || len(p.Mounts) > maxMounts {
		return fmt.Errorf("%d mount operations", len(p.Mounts))
	}
	for i := range p.Mounts {
		if err := p.Mounts[i].validate(i == 0); err != nil {
			return fmt.Errorf("mount %d (%s %s): %w", i, p.Mounts[i].Kind, p.Mounts[i].Target.Quote(), err)
		}
	}
	for _, l := range p.Limits {
		if l.Resource < 0 || l.Resource > 15 || l.Soft > l.Hard {
			return fmt.Errorf("limit %s: %d of %d", l.Name, l.Soft, l.Hard)
		}
	}
	for _, c := range p.Controls {
		if len(c.File) > 64 || len(c.Value) > 128 || strings.Trim(c.File, "abcdefghijklmnopqrstuvwxyz._") != "" || strings.Trim(c.Value, "abcdefghijklmnopqrstuvwxyz0123456789 :=") != "" {
			return fmt.Errorf("control %q of %q", c.File, c.Value)
		}
	}
	if len(p.Controls) > 0 && !p.Namespaces.Cgroup {
		return fmt.Errorf("a control group without a namespace for it")
	}
	if n := len(p.Seccomp.Program); n == 0 || n > maxInsns {
		return fmt.Errorf("seccomp program of %d instructions", n)
	}
	if err := p.validateLandlock(); err != nil {
		return err
	}
	return p.validateProcess()
}

func (p *Plan) validateLandlock() error {
	if p.Landlock == nil {
		return nil
	}
	if p.Landlock.ABI < 1 || len(p.Landlock.Rules) > maxMounts {
		return fmt.Errorf("landlock ABI %d with %d rules", p.Landlock.ABI, len(p.Landlock.Rules))
	}
	for _, r := range p.Landlock.Rules {
		if err := validPath(r.Path); err != nil {
			return fmt.Errorf("landlock rule: %w", err)
		}
		if r.Access&^p.Landlock.HandledFS != 0 {
			return fmt.Errorf("landlock rule %s grants %#x outside %#x", r.Path.Quote(), r.Access, p.Landlock.HandledFS)
		}
	}
	return nil
}

func (p *Plan) validateProcess() error {
	pr := &p.Process
	if err := validPath(pr.Path); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	if err := validPath(pr.Dir); err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	if pr.Idle && (pr.AsPID1 || pr.TTY) {
		return fmt.Errorf("a program that is not started has no terminal and is not process 1")
	}
	if pr.OOMAdj < 0 || pr.OOMAdj > 1000 {
		return fmt.Errorf("oom_score_adj %d", pr.OOMAdj)
	}
	if len(pr.Argv) == 0 || len(pr.Argv) > maxArgs || len(pr.Env) > maxArgs {
		return fmt.Errorf("%d arguments, %d environment entries", len(pr.Argv), len(pr.Env))
	}
	for _, s := range slices.Concat(pr.Argv, pr.Env) {
		if strings.IndexByte(string(s), 0) >= 0 {
			return fmt.Errorf("argument or environment entry %s holds a NUL byte", s.Quote())
		}
	}
	for i, s := range p.Stdio {
		switch s {
		case Inherit, Null:
		case Reopen:
			if i != 0 {
				return fmt.Errorf("descriptor %d cannot be reopened", i)
			}
		case Pty:
			if !pr.TTY {
				return fmt.Errorf("descriptor %d is a terminal in a plan without one", i)
			}
		default:
			return fmt.Errorf("descriptor %d is %q", i, s)
		}
	}
	if slices.Contains(p.Fds, FdPty) != pr.TTY || slices.Contains(p.Fds, FdSeccomp) != p.Seccomp.Notify {
		return fmt.Errorf("descriptor roles %v do not match the plan", p.Fds)
	}
	return nil
}

func (m *Mount) validate(first bool) error {
	if first {
		if m.Target != "/" || (m.Kind != Tmpfs && m.Kind != Bind && m.Kind != Fuse) {
			return fmt.Errorf("the first operation must mount the root")
		}
	} else if err := validPath(m.Target); err != nil || m.Target == "/" && m.Kind != Remount {
		return fmt.Errorf("target %s is not an absolute clean path below /", m.Target.Quote())
	}
	if m.Access != "" && m.Access != ReadOnly && m.Access != ReadWrite {
		return fmt.Errorf("access %q", m.Access)
	}
	if m.Size < 0 || m.Inodes < 0 || m.Mode&^0o7777 != 0 {
		return fmt.Errorf("size %d, inodes %d, mode %#o", m.Size, m.Inodes, m.Mode)
	}
	return m.validateKind()
}

func (m *Mount) validateKind() error {
	switch m.Kind {
	case Tmpfs, Dir, File, Proc, Devpts, Mqueue, Mask:
		return nil
	case Protect, Remount, Fuse:
		return needAccess(m.Access)
	case Symlink:
		if m.Source == "" || len(m.Source) > maxPath || strings.IndexByte(string(m.Source), 0) >= 0 {
			return fmt.Errorf("link text %s", m.Source.Quote())
		}
		return nil
	case Bind:
		if err := validPath(m.Source); err != nil {
			return fmt.Errorf("source: %w", err)
		}
		if m.Device && (m.NoExec || m.Access != ReadWrite || !isDevice(m.Source)) {
			return fmt.Errorf("device %s is not one that may be shown", m.Source.Quote())
		}
		return needAccess(m.Access)
	case Overlay:
		return m.validateOverlay()
	}
	return fmt.Errorf("unknown kind %q", m.Kind)
}

func (m *Mount) validateOverlay() error {
	if len(m.Lower) == 0 || len(m.Lower) > 64 || (m.Upper == "") != (m.Work == "") {
		return fmt.Errorf("%d lower layers, upper %s, work %s", len(m.Lower), m.Upper.Quote(), m.Work.Quote())
	}
	for _, s := range append(slices.Clone(m.Lower), m.Upper, m.Work) {
		if s == "" && m.Upper == "" {
			continue
		}
		if err := validPath(s); err != nil {
			return fmt.Errorf("layer: %w", err)
		}
	}
	for _, h := range m.Hide {
		if err := validPath("/" + h); err != nil || h == "" {
			return fmt.Errorf("hidden name: %s is not relative and clean", h.Quote())
		}
	}
	if m.Upper == "" && len(m.Lower) == 1 && len(m.Hide) == 0 {
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

func isDevice(source Bytes) bool {
	for _, n := range deviceNames {
		if string(source) == "/dev/"+n {
			return true
		}
	}
	return false
}

func validPath(b Bytes) error {
	s := string(b)
	if len(s) > maxPath || !strings.HasPrefix(s, "/") || path.Clean(s) != s || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%s is not an absolute clean path", b.Quote())
	}
	return nil
}

// ValidSession says whether id may name a session: 1 to 64 ASCII letters, digits and hyphens, not
// starting with a hyphen, so that it is always one path component and never an option.
func ValidSession(id string) error {
	if len(id) < 1 || len(id) > 64 || id[0] == '-' {
		return fmt.Errorf("session id %s: want 1 to 64 letters, digits and hyphens", Bytes(id).Quote())
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return fmt.Errorf("session id %s: want 1 to 64 letters, digits and hyphens", Bytes(id).Quote())
		}
	}
	return nil
}
