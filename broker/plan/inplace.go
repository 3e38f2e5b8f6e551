package plan

import (
	"errors"
	"fmt"

	setup "sbx.example/sbx/shared/plan"
)

// InPlace is how a plan is carried out on a host that gives no namespaces. Nothing is mounted: Mounts say what is
// granted, each at its own path, and Landlock's rules and the filter hold. Judged trees are written by the broker
// alone, as ever. Absent is what no rule grants: it is refused, and not out of sight.
type InPlace struct {
	// Tmp is the session's folder for temporary files, which stands for /tmp.
	Tmp Bytes `json:"tmp"`
}

// Scoped says whether no signal leaves the sandbox. What is sent to all processes reaches its own alone then.
func (p *Plan) Scoped() bool { return p.InPlace == nil || p.Landlock.Scoped&ScopeSignal != 0 }

// HostNetwork says whether the network is the host's. In place no socket can be made, so it does not matter whose it
// is.
func (p *Plan) HostNetwork() bool { return !p.Namespaces.Net && p.InPlace == nil }

// isTmp says whether a mount is the session's folder for temporary files.
func (p *Plan) isTmp(m *Mount) bool { return p.InPlace != nil && Bytes(m.Target) == p.InPlace.Tmp }

// Kinds of Landlock's scope (landlock(7), ABI 6).
const (
	ScopeAbstract = 1 << 0
	ScopeSignal   = 1 << 1
)

// validateInPlace checks what the interpreter does there instead of what a set-up does.
func (p *Plan) validateInPlace() error {
	x := p.InPlace
	if x == nil {
		return nil
	}
	switch {
	case p.Namespaces != (Namespaces{}) || p.Hostname != "" || p.Loopback || p.Gate != nil || p.Bubblewrap != nil ||
		p.Process.AsPID1 || p.Identity.HasRanges() || len(p.Delegated) > 0:
		return errors.New("with what takes namespaces")
	case p.Landlock == nil || !p.Seccomp.Notify:
		return errors.New("without what holds it")
	case p.Identity.InsideUID != p.Identity.OutsideUID || p.Identity.InsideGID != p.Identity.OutsideGID:
		return errors.New("with other ids inside")
	case len(p.Mounts) > setup.MaxMounts:
		return fmt.Errorf("%d grants", len(p.Mounts))
	}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		own := m.Kind == Bind && m.Source == m.Target || m.Kind == Judged && m.Source == ""
		if !own || !setup.IsPath(m.Target) || m.Access != ReadOnly && m.Access != ReadWrite {
			return fmt.Errorf("grant %d: %s of %q at %q, access %q", i, m.Kind, m.Source, m.Target, m.Access)
		}
	}
	for i, kind := range p.Stdio {
		if kind != Inherit && kind != Pty && kind != Null {
			return fmt.Errorf("descriptor %d is %q", i, kind)
		}
	}
	return validPath(x.Tmp)
}

func (p *Plan) namespacesText() string {
	if p.InPlace != nil {
		return "none: what is listed as mounted is granted where it is"
	}
	return NamespacesText(p.Namespaces)
}

// lockedText is what else is said of privileges. Without a namespace nobody may lock the securebits.
func (p *Plan) lockedText() string {
	if p.InPlace != nil {
		return "; temporary files in " + p.InPlace.Tmp.Quote()
	}
	return ", securebits locked"
}
