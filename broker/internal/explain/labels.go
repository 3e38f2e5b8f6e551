package explain

import (
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
)

// labelled says what reading a path brings.
func (x *Explainer) labelled(p string, row *Answer) {
	labels := x.Settings.Layers.Policy.LabelsOf(p, false, x.Env.Now)
	if row.Layer == "secret" {
		labels = append(labels, policy.SecretLabel(p))
	}
	if len(labels) == 0 || row.Decision != "allow" && row.Decision != "ask" {
		return
	}
	row.Reason += "; labelled " + strings.Join(labels, ", ")
	switch {
	case !slices.ContainsFunc(labels, func(label string) bool { return !x.carries(label) }):
		row.Reason += ", which a run from here carries from the start"
	case x.Static:
		row.Reason += ", which nobody who does not accept it hears of"
	default:
		row.Reason += ": from then on the run asks about who does not accept it, and at the read after contact with one"
	}
}

// carries says whether a run from here carries a label from the start.
func (x *Explainer) carries(label string) bool {
	return slices.ContainsFunc(x.Input.Labels, func(l planner.Label) bool { return l.Name == label })
}

// heard says of a contact that is allowed which labels it may hear of.
func (x *Explainer) heard(accepts []string, row *Answer) {
	if row.Decision != "allow" || !x.Input.ShowsSecrets() && !x.Settings.Layers.Policy.Labels(x.Env.Now) {
		return
	}
	if row.Reason += "; it may hear of no label"; len(accepts) > 0 {
		row.Reason = strings.TrimSuffix(row.Reason, "no label") + strings.Join(accepts, ", ") + " and of no other label"
	}
}
