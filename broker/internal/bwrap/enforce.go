//go:build linux

package bwrap

import (
	"path"
	"slices"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/gate/gatefs"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/plan"
)

// Under is what holds under the words where somebody has said so (bwrap.enforce): sbx's own secrets and guard. Package
// live knows them.
type Under interface {
	// Hidden are the host's paths, each with all below it, that nobody is shown of what the words show, to be read and to
	// be written.
	Hidden(read, write []string) ([]string, error)
	// Holds says how a tree or file is held that the words show to be written: fixed is not written all the same, and a
	// guarded directory is served.
	Holds(p string) (fixed, guarded bool)
	// Planned is told what the sandbox will be, and gives it limits.
	Planned(p *plan.Plan)
	// Guard returns how a directory of the host's is served, and says what holds in it. Init is process 1.
	Guard(init int, m *plan.Mount, root *served.Dir) (gatefs.Options, error)
	// Blocked ends it, and says what was refused.
	Blocked() []audit.Event
}

// ofKernel says whether a path of the host's is in a file system of the kernel's, where people keep nothing.
func ofKernel(p string) bool {
	return slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(top string) bool { return inside(p, top) != "" })
}

// shown are the host's paths that operations show to be read, and to be written.
func shown(ops []operation) (read, write []string) {
	for i := range ops {
		switch o := &ops[i]; {
		case o.source == "" || ofKernel(o.source):
		case o.do == bindRO:
			read = append(read, o.source)
		case o.do == bindRW, o.do == bindDev, o.do == overlayRW:
			write = append(write, o.source)
		}
		read = append(read, ops[i].layers...)
	}
	return read, write
}

// enforce asks what stays hidden of what the operations show.
func (d *drawing) enforce(ops []operation) (err error) {
	switch {
	case d.under != nil:
		for i := range ops {
			if ops[i].do == overlayRW {
				return fail("bwrap.enforce: what --overlay writes to %s cannot be guarded: use --tmp-overlay", ops[i].source)
			}
		}
		d.hidden, err = d.under.Hidden(shown(ops))
	case d.asks != nil:
		d.hidden = d.asks.Covered()
	}
	return err
}

// errShown says that nothing is to be mounted: the same is there already, and guarded.
const errShown = failure("it is shown already")

// serves says whether what is shown at a place is that directory of the host's, by who serves one above it.
func (d *drawing) serves(at, source string) bool {
	l := d.of(at)
	return l.served != nil && !l.ro && l.made[at].kind == missing && l.behind(at) == source
}

// guard settles how a bind that is written is held. A directory is served, so that guarded names stay as they are in it
// and secrets do not exist; what is guarded itself is read-only.
func (d *drawing) guard(o *operation, m *plan.Mount, l *layer) error {
	if d.under == nil || l.ro || ofKernel(o.source) {
		return nil
	}
	secret := slices.ContainsFunc(d.hidden, func(h string) bool { return inside(o.source, h) != "" }) // it is covered
	switch fixed, guarded := d.under.Holds(o.source); {
	case fixed, secret:
		m.Access, l.ro = plan.ReadOnly, true
	case !guarded || d.view.host.at(o.source).kind != directory:
	case d.serves(m.Target, o.source):
		return errShown
	case o.source == "/" || m.Target == "/":
		return fail("bwrap.enforce: %s cannot be written as a whole: bind it read-only, and what is to be written on it",
			o.source)
	case !d.fuse:
		return fail("bwrap.enforce: %s cannot be guarded: /dev/fuse cannot be opened", o.source)
	default:
		l.served = map[string][]name{m.Target: nil}
	}
	return nil
}

// cover covers what a mount shows of what is hidden. What is served is hidden by who serves it.
func (d *drawing) cover(l *layer) {
	if l.served != nil {
		return
	}
	for _, h := range d.hidden {
		for _, s := range l.sources {
			at, what := l.target, s
			if rel := inside(h, s); inside(s, h) == "" && rel != "" {
				at, what = path.Clean(l.target+rel), h
			} else if inside(s, h) == "" {
				continue
			}
			switch d.view.host.at(what).kind {
			case directory:
				d.mount(plan.Mount{Kind: plan.Tmpfs, Target: at, Mode: 0o755, Size: 64 << 10}, &layer{target: at, own: true})
			case regular:
				// A device that does not work here: it cannot be opened, and something can be mounted on it.
				d.mount(plan.Mount{Kind: plan.Bind, Source: "/dev/null", Target: at, Access: plan.ReadOnly},
					&layer{target: at, sources: []string{"/dev/null"}, ro: true})
			}
		}
	}
}

// hiddenIn are the names below a directory of the host's that its server hides.
func (d *drawing) hiddenIn(dir string) (out []string) {
	for _, h := range d.hidden {
		if rel := inside(h, dir); rel != "" && rel != "/" {
			out = append(out, rel[1:])
		}
	}
	return out
}
