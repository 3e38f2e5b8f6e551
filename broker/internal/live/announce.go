//go:build linux

package live

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/changes"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// announce prints what the user should know before the program runs, and of what an earlier attempt has said only what
// is new.
func (b *Broker) announce(r *run, p *plan.Plan, losses []planner.Loss) {
	if b.Lost != nil {
		b.Lost(losses)
	}
	if r.Quiet {
		return
	}
	for _, l := range losses {
		if !slices.Contains(r.told, l) {
			b.Warn(l.String())
		}
	}
	r.told = append(r.told, losses...)
	if r.Verbose {
		b.Note(p.Text())
		if len(r.unkept) > 0 {
			b.Note("sbx: " + r.agent + " also takes credentials that you have not added: " + strings.Join(r.unkept, ", ") +
				" (sbx secret add NAME)\n")
		}
	} else if launch.HasTerminal([3]*os.File{nil, nil, b.Std[2]}) {
		b.Note(statusLine(r, p))
	}
}

func statusLine(r *run, p *plan.Plan) string {
	net := "no network"
	switch {
	case p.HostNetwork():
		net = "host network"
	case p.Namespaces.JoinNet:
		net = "network"
	}
	for _, d := range append(r.doors.Names(), r.credentials...) {
		net += ", " + d
	}
	if len(r.secrets) > 0 {
		net += ", secrets shown: " + strings.Join(r.secrets, " ")
	}
	if len(r.labels) > 0 {
		net += ", labels: " + strings.Join(r.labels, ", ")
	}
	rw := p.Writable()
	if len(rw) == 0 {
		rw = []string{"nothing"}
	}
	how := r.mode
	if r.engine == gate.EngineNotify {
		how += " (notify)"
	}
	if r.inPlace {
		how += " (landlock)"
	}
	about := r.profile
	if r.agent != "" {
		about += ", " + r.agent
	}
	return fmt.Sprintf("sbx: %s, %s, %s, rw: %s (sid %s)\n", about, how, net, strings.Join(rw, " "), p.Session)
}

// secretsShown are the secret files that rules show, as a person names them.
func secretsShown(s request.Settings, in *planner.Input) (out []string) {
	rules := s.Reveals(s.Layers.Policy).Rules
	for _, p := range in.Reveals {
		if rules[p] {
			out = append(out, p)
		}
	}
	for _, g := range in.Grants {
		if g.Reveal {
			out = append(out, g.Path)
		}
	}
	for i, p := range out {
		out[i] = quoting.Quote(policy.Vars{Home: in.Facts.Home}.Short(p))
	}
	return out
}

// warnHomeHidden says that the home directory lies in a place of which the sandbox has one of its own, so that nothing
// in it is asked about.
func (b *Broker) warnHomeHidden(p *plan.Plan, home string) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if target := m.Target; m.Kind == plan.Tmpfs && m.Why == "" && home != target && host.Within(home, target) &&
			target != "/" {
			b.Warn(fmt.Sprintf("the home directory %s lies in %s, of which the sandbox has one of its own: what is not "+
				"granted does not exist there, and is not asked about (--ro and --rw show it)", quoting.Quote(home), target))
			return
		}
	}
}

// sayKept says after a run with --keep how to go on.
func (b *Broker) sayKept(r *run, sid, dir string, p *plan.Plan) {
	if !r.Keep {
		return
	}
	layers, err := changes.Layers(p, dir, false)
	if err != nil || len(layers) == 0 {
		return
	}
	b.Warn(fmt.Sprintf("kept what was written over %s: sbx diff %s, sbx apply %s, sbx discard %s",
		strings.Join(changes.Targets(layers), ", "), sid, sid, sid))
}
