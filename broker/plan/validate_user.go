package plan

import (
	"fmt"
	"slices"
	"strings"

	setup "sbx.example/sbx/shared/plan"
)

// Validate reports the first thing in p that the interpreter must not be asked to do. What is here beyond Setup.Check
// takes no privilege, or belongs to a user namespace: sbx-helper, which makes none, is never asked for any of it.
func (p *Plan) Validate() error {
	if p.Version != Version {
		return fmt.Errorf("plan version %d, want %d", p.Version, Version)
	}
	if err := ValidSession(p.Session); err != nil {
		return err
	}
	if err := p.checkSetup(); err != nil {
		return err
	}
	if err := p.validateBounds(); err != nil {
		return err
	}
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if err := validateFiles(m); err != nil {
			return fmt.Errorf("mount %d: %w", i, err)
		}
		if m.Kind == Overlay || m.Kind == TmpOverlay {
			if err := validateOverlay(m); err != nil {
				return fmt.Errorf("mount %d (%s %q): %w", i, m.Kind, m.Target, err)
			}
		}
	}
	if err := p.validateLandlock(); err != nil {
		return err
	}
	if err := p.validateProcess(); err != nil {
		return err
	}
	if p.Namespaces.TimeOffset != 0 && !p.Namespaces.Time {
		return fmt.Errorf("time offset without a time namespace")
	}
	if n := p.Namespaces; n.JoinNet && (!n.Net || !n.User || p.Loopback) {
		return fmt.Errorf("a network made before needs a network and a user namespace, and brings its own loopback")
	}
	if err := p.validateIdentity(); err != nil {
		return err
	}
	if err := p.validateDelegated(); err != nil {
		return err
	}
	if err := p.validateGate(); err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	if err := p.validateInPlace(); err != nil {
		return fmt.Errorf("in place: %w", err)
	}
	if err := p.Moved.validate(); err != nil {
		return err
	}
	if err := p.validateBwrap(); err != nil {
		return err
	}
	return p.validateBubblewrap()
}

// Setup is the part of p that takes privileges.
func (p *Plan) Setup() *Setup {
	s := &Setup{Namespaces: p.Namespaces, Hostname: string(p.Hostname), Loopback: p.Loopback, Mounts: p.Mounts,
		Stdio: p.Stdio}
	if p.TakesTrees() {
		s.Mounts = slices.Clone(p.Mounts)
		for i := range s.Mounts {
			if m := &s.Mounts[i]; m.Kind == Judged {
				*m = Mount{Kind: Protect, Target: m.Target, Access: m.Access, Why: m.Why}
			}
		}
	}
	return s
}

// TakesTrees says whether the broker takes the trees that it alone writes from the host, because what builds the
// sandbox hands nothing over: sbx-helper or bubblewrap.
func (p *Plan) TakesTrees() bool {
	return !p.Namespaces.User && p.InPlace == nil && p.Bubblewrap == nil &&
		slices.ContainsFunc(p.Mounts, func(m Mount) bool { return m.Kind == Judged })
}

const maxInsns = 4096 // BPF_MAXINSNS

func (p *Plan) validateBounds() error {
	for _, l := range p.Limits {
		if l.Resource < 0 || l.Resource > 15 || l.Soft > l.Hard {
			return fmt.Errorf("limit %s: %d of %d", l.Name, l.Soft, l.Hard)
		}
	}
	for _, c := range p.Controls {
		if len(c.File) > 64 || len(c.Value) > 128 || strings.Trim(c.File, "abcdefghijklmnopqrstuvwxyz._") != "" ||
			strings.Trim(c.Value, "abcdefghijklmnopqrstuvwxyz0123456789 :=") != "" {
			return fmt.Errorf("control %q of %q", c.File, c.Value)
		}
	}
	if len(p.Controls) > 0 && !p.Namespaces.Cgroup && p.InPlace == nil {
		return fmt.Errorf("a control group without a namespace for it")
	}
	if n := len(p.Seccomp.Program); n == 0 || n > maxInsns {
		return fmt.Errorf("seccomp program of %d instructions", n)
	}
	return nil
}

const maxRanges = 16 // of subordinate ids

func (p *Plan) validateIdentity() error {
	id := &p.Identity
	if !id.HasRanges() {
		return nil
	}
	if !p.Namespaces.User || len(id.SubUIDs) == 0 || len(id.SubGIDs) == 0 || !slices.Contains(p.Fds, FdUserNS) {
		return fmt.Errorf("subordinate ids need a user namespace, its descriptor, and both of uids and gids")
	}
	for _, x := range [...]struct {
		own  uint32
		list []IDRange
	}{{id.InsideUID, id.SubUIDs}, {id.InsideGID, id.SubGIDs}} {
		if len(x.list) > maxRanges {
			return fmt.Errorf("%d ranges of ids", len(x.list))
		}
		for i, r := range x.list {
			if r.First == 0 || r.Count == 0 || uint64(r.First)+uint64(r.Count) > 1<<32-1 || x.own-r.First < r.Count {
				return fmt.Errorf("ids %d of %d are not subordinate to %d", r.Count, r.First, x.own)
			}
			if i > 0 && uint64(x.list[i-1].First)+uint64(x.list[i-1].Count) > uint64(r.First) {
				return fmt.Errorf("ids from %d on are out of order", r.First)
			}
		}
	}
	return nil
}

func (p *Plan) validateDelegated() error {
	if len(p.Delegated) == 0 {
		return nil
	}
	if !p.Namespaces.User || !p.Namespaces.Cgroup || !slices.ContainsFunc(p.Mounts, func(m Mount) bool {
		return m.Kind == Bind && m.Target == CgroupPlace && m.Access == ReadWrite && !m.Optional
	}) {
		return fmt.Errorf("control groups are handed down without a place for them")
	}
	for _, c := range p.Delegated {
		if c != "cpu" && c != "io" && c != "memory" && c != "pids" {
			return fmt.Errorf("controller %q cannot be handed down", c)
		}
	}
	return nil
}

func (p *Plan) validateGate() error {
	served := p.Mounts[0].Kind == Fuse
	if p.Gate == nil || !served {
		if p.Gate != nil || served {
			return fmt.Errorf("a served root and its description need each other")
		}
		return nil
	}
	if n := len(p.Gate.Dirs); n == 0 || n > setup.MaxMounts || p.Gate.Dirs[0].Path != "/" {
		return fmt.Errorf("%d directories, or the first is not /", n)
	}
	if !slices.Contains(p.Fds, FdUserNS) || !slices.Contains(p.Fds, FdMountNS) {
		return fmt.Errorf("no descriptors for the agent")
	}
	for i, d := range p.Gate.Dirs {
		if err := validPath(d.Path); err != nil {
			return err
		}
		if i > 0 && p.Gate.Dirs[i-1].Path >= d.Path {
			return fmt.Errorf("%s is out of order", d.Path.Quote())
		}
		if len(d.Names) > setup.MaxMounts || d.Place && (d.Ask || d.List || len(d.Names) > 0) {
			return fmt.Errorf("%s has %d names, place=%t, ask=%t", d.Path.Quote(), len(d.Names), d.Place, d.Ask)
		}
		for _, n := range d.Names {
			if err := n.validate(); err != nil {
				return fmt.Errorf("%s: %w", d.Path.Quote(), err)
			}
		}
	}
	return nil
}

func (n *GateName) validate() error {
	if s := string(n.Name); s == "" || s == "." || s == ".." || len(s) > 255 || strings.ContainsAny(s, "/\x00") {
		return fmt.Errorf("%s is not a name", n.Name.Quote())
	}
	switch {
	case n.Kind == File && n.Target == "":
		return setup.NeedAccess(n.Access)
	case n.Kind == Absent && n.Target == "" && n.Access == "":
		return nil
	case n.Kind == Symlink && n.Target != "" && len(n.Target) <= setup.MaxPath && strings.IndexByte(string(n.Target),
		0) < 0 && n.Access == "":
		return nil
	}
	return fmt.Errorf("name %s cannot be %q", n.Name.Quote(), n.Kind)
}

func validPath(b Bytes) error {
	if !setup.IsPath(string(b)) {
		return fmt.Errorf("%s is not an absolute clean path", b.Quote())
	}
	return nil
}

// Bounds of the files on top of layers.
const (
	maxFiles = 16   // of one mount
	MaxText  = 4096 // bytes of one
)

// validateFiles is not for the helper, which takes none.
func validateFiles(m *Mount) error {
	switch {
	case len(m.Files) > 0 && m.Kind != Overlay:
		return fmt.Errorf("files belong on top of layers")
	case len(m.Files) > maxFiles:
		return fmt.Errorf("%d files, more than %d", len(m.Files), maxFiles)
	}
	for i, f := range m.Files {
		again := func(h Text) bool { return h.Name == f.Name }
		if f.Name == "" || !setup.IsPath("/"+f.Name) || strings.Contains(f.Name, "/") ||
			slices.ContainsFunc(m.Files[:i], again) || len(f.Text) > MaxText {
			return fmt.Errorf("file %q of %d bytes", f.Name, len(f.Text))
		}
	}
	return nil
}

func validateOverlay(m *Mount) error {
	layers := m.Lower
	if m.Upper != "" || m.Work != "" {
		layers = append(slices.Clone(layers), m.Upper, m.Work)
	}
	switch {
	case len(m.Lower) == 0 || len(m.Lower) > 64 || (m.Upper == "") != (m.Work == ""):
		return fmt.Errorf("%d lower layers, upper %q, work %q", len(m.Lower), m.Upper, m.Work)
	case !setup.IsPath(layers...):
		return fmt.Errorf("layer: not all of %q are absolute clean paths", layers)
	case slices.ContainsFunc(m.Hide, func(h string) bool { return h == "" || !setup.IsPath("/"+h) }):
		return fmt.Errorf("hidden name: not all of %q are relative and clean", m.Hide)
	case m.Kind == TmpOverlay && m.Upper != "":
		return fmt.Errorf("upper layer %q where none is kept", m.Upper)
	case m.Kind == Overlay && m.Upper == "" && len(m.Lower) == 1 && len(m.Hide)+len(m.Files) == 0:
		return fmt.Errorf("one layer is no overlay")
	}
	return setup.NeedAccess(m.Access)
}
