//go:build linux

package input

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/doors"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
)

// labels has the gate look at the first access to each labelled place. Where one is shown without that, because nobody
// looks here, because a person has granted it or a part of it, because it may be written, or because it is the
// system's, whose trees are not taken apart for it, the session carries its label from the start. All that is shown is
// known by now.
func (r *Run) labels(s request.Settings, in *planner.Input, open *doors.Doors) {
	x := carrier{s: s, in: in, now: time.Now(), static: r.Mode != "dynamic"}
	rules := s.Layers.Policy.Labelling(x.now)
	for _, rule := range rules {
		x.label(rule)
	}
	for _, g := range in.Grants {
		if g.Reveal && (len(rules) > 0 || !slices.Contains(in.OwnSecrets, g.Path)) {
			x.carryLabel(policy.SecretLabel(g.Path), g.Path, g.Why)
		}
	}
	if len(rules) > 0 {
		x.given(r.Std[0])
	}
	unheld(in, open)
}

// given has the session carry the labels of the file that is its standard input: that was opened outside.
func (x *carrier) given(f *os.File) {
	if f == nil {
		return
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return
	}
	for _, label := range x.s.Layers.Policy.LabelsOf(name, false, x.now) {
		x.carryLabel(label, name, "it is the standard input")
	}
}

// label has one rule's label noted at the first access, or carried.
func (x *carrier) label(r policy.Rule) {
	shown := slices.DeleteFunc(slices.Clone(x.in.Grants), func(g planner.Grant) bool { return !x.shows(g, r) })
	place := r.Path().Place()
	switch {
	case slices.ContainsFunc(x.in.Copies, func(c planner.Copy) bool { return r.Path().Match(c.Path) }):
		x.carryLabel(r.Label, r.Path().String(), r.Origin.String())
	case len(shown) == 0 || place != "" && x.outOfSight(place, shown):
	case !x.static && host.Within(place, x.in.Facts.Home) && !slices.ContainsFunc(shown, func(g planner.Grant) bool {
		return g.Mode != planner.Read || !host.Within(place, x.canonical(g)) || place == x.canonical(g) ||
			host.Within(place, x.in.Project)
	}):
		x.in.Hides = append(x.in.Hides, planner.Hide{Path: place, Ask: true, Why: r.Origin.String()})
	default:
		x.carryLabel(r.Label, r.Path().String(), r.Origin.String())
	}
}

func (x *carrier) carryLabel(name, place, why string) {
	if !slices.ContainsFunc(x.in.Labels, func(l planner.Label) bool { return l.Name == name }) {
		x.in.Labels = append(x.in.Labels, planner.Label{Name: name, Place: place, Why: why})
	}
}

// shows says whether a grant shows something that a rule is about.
func (x *carrier) shows(g planner.Grant, r policy.Rule) bool {
	return g.Mode != planner.Scratch && !g.Socket && !g.Own && r.Path().Below(x.canonical(g))
}

// outOfSight says whether a place is hidden, and none of the grants shows something that lies there all the same.
func (x *carrier) outOfSight(place string, shown []planner.Grant) bool {
	return slices.ContainsFunc(x.in.Hides, func(h planner.Hide) bool {
		hidden := path.Clean(h.Path)
		return host.Within(place, hidden) && !slices.ContainsFunc(shown, func(g planner.Grant) bool {
			return host.Within(x.canonical(g), hidden)
		})
	})
}

// unheld names as a loss what is let in and may hear of what the session carries from the start: nobody can be asked
// about it any more. A call of a tool can be held back.
func unheld(in *planner.Input, open *doors.Doors) {
	if names := open.Unseen(); len(in.Labels) > 0 && len(names) > 0 {
		in.Losses = append(in.Losses, planner.Loss{What: strings.Join(names, ", "),
			Why: "this run shows " + in.Labels[0].Place + ", labelled " + in.Labels[0].Name +
				", and what is let in from the start may hear of it"})
	}
}
