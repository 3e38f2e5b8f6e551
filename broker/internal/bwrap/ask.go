//go:build linux

package bwrap

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/gate/askfs"
	"sbx.example/sbx/broker/plan"
)

// Asks asks a person about what the words hide of what they show, where somebody has said so (bwrap.ask). Package live
// knows how.
type Asks interface {
	// Askable says why nobody can be asked on this host, nil if somebody can; Unaskable is told what is not asked about.
	Askable() error
	Unaskable(why string)
	// Covered are the host's paths that nobody inside reaches: who did could answer himself.
	Covered() []string
	// ServeAsked serves what is shown after a yes. It owns fd. Read and write are what the words show of the host.
	ServeAsked(c *child.Child, p *plan.Plan, read, write []string, record arbiter.Recorder, sid string,
		places []askfs.Place, fd int) error
	// Lost ends it, and says what could not be asked about.
	Lost() []audit.Event
}

// whetherAsked settles whether somebody is asked: else nothing of it is done.
func (d *drawing) whetherAsked(ops []operation) {
	if d.asks == nil {
		return
	}
	if !slices.ContainsFunc(ops, func(o operation) bool { return o.do == tmpfs || o.do == fileRO }) {
		d.asks = nil
		return
	}
	if err := d.asks.Askable(); err != nil {
		d.asks.Unaskable(err.Error())
		d.asks = nil
	}
}

// hides is what of the host's stops being seen when something is mounted at p; "" where nobody is asked about it.
func (d *drawing) hides(p string, k kind) string {
	if d.asks == nil || p == "/" {
		return ""
	}
	l := d.of(p)
	from := ""
	switch {
	case l.own && l.hides != "":
		from = strings.TrimSuffix(l.hides, "/") + strings.TrimPrefix(p, l.target)
	case l.own || l.kernel || len(l.sources) != 1 || p != l.target && l.made[p].kind != missing:
		return ""
	case l.hides != "":
		from = l.hides
	default:
		from = l.behind(p)
	}
	if d.view.host.at(from).kind != k || ofKernel(from) ||
		slices.ContainsFunc(d.hidden, func(h string) bool { return inside(from, h) != "" }) {
		return ""
	}
	return from
}

// askDir plans that what a tmpfs hides is asked about. Who may not search it gets as far as the question; what he may
// not list or write stays so.
func (d *drawing) askDir(l *layer, mode uint32) {
	if l.hides != "" {
		d.add(plan.Mount{Kind: plan.AskDir, Target: l.target, Lower: []string{l.hides}, Mode: mode | 0o111,
			Access: plan.ReadWrite})
	}
}

// askFile makes a file of data one that is asked about, where it hides one of the host's.
func (d *drawing) askFile(l *layer, m *plan.Mount) {
	if l.hides = d.hides(m.Target, regular); l.hides != "" {
		m.Kind, m.Lower = plan.AskFile, []string{l.hides}
	}
}

// askServed says whether anything is asked about.
func (d *drawing) askServed() bool {
	return slices.ContainsFunc(d.steps, func(s step) bool { return s.Kind == plan.AskDir || s.Kind == plan.AskFile })
}

// places are what is asked about, in the plan's order.
func places(p *plan.Plan) (out []askfs.Place) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		x := askfs.Place{No: unix.ENOENT, Mode: m.Mode}
		switch m.Kind {
		case plan.AskDir:
			below := p.Mounts[i-1] // the tmpfs
			if below.Mode&0o100 == 0 {
				x.No = unix.EACCES
			}
			for _, n := range p.Mounts[i+1:] {
				if rel := inside(n.Target, m.Target); n.Kind == plan.Dir && rel != "" && rel != "/" {
					x.Made = append(x.Made, rel[1:])
				}
			}
		case plan.AskFile:
			x.File, x.Data = true, []byte(m.Source)
		default:
			continue
		}
		x.Host = m.Lower[0]
		out = append(out, x)
	}
	return out
}

// blocked are what was refused, and what this host could not give.
func (m *monitor) blocked() (out []audit.Event) {
	if m.asks != nil {
		out = m.asks.Lost()
	}
	if m.under != nil {
		out = append(out, m.under.Blocked()...)
	}
	return out
}
