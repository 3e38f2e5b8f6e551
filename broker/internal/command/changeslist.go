//go:build linux

package command

import (
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/changes"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/plan"
)

// unread returns a status other than 0 if something of the changes could not be looked at, and says so.
func (t *Term) unread(list []changes.Change) int {
	var which []string
	for i := range list {
		if list[i].Unread {
			which = append(which, quote(list[i].Path))
		}
	}
	if len(which) == 0 {
		return 0
	}
	return t.Fail(&planner.Refusal{What: "not all could be read: " + strings.Join(which, ", "),
		Hint: "the rest is as shown; what a program shut is read when its session has ended"})
}

// changesJSON lists changes for programs.
func changesJSON(list []changes.Change) string {
	type entry struct {
		Op      changes.Op   `json:"op"`
		Path    plan.Bytes   `json:"path"`
		From    plan.Bytes   `json:"from,omitempty"`
		Kind    changes.Kind `json:"kind"`
		OldMode string       `json:"old_mode,omitempty"`
		NewMode string       `json:"new_mode,omitempty"`
		Link    plan.Bytes   `json:"link,omitempty"`
		Attrs   bool         `json:"attributes,omitempty"`
		Links   int          `json:"other_names,omitempty"`
		Size    int64        `json:"size"`
		Below   int          `json:"below,omitempty"`
		Risk    changes.Risk `json:"risk,omitempty"`
		Changed bool         `json:"changed"`
		Reason  plan.Bytes   `json:"reason,omitempty"`
	}
	out := []entry{}
	for _, c := range list {
		mode := func(m uint32) string {
			if m == 0 && c.Op != changes.Mode { // there is none
				return ""
			}
			return fmt.Sprintf("%04o", m)
		}
		out = append(out, entry{c.Op, plan.Bytes(c.Path), plan.Bytes(c.From), c.Kind, mode(c.OldMode), mode(c.NewMode),
			plan.Bytes(c.Link), c.Attributes, c.Links, c.Size, c.Entries, c.Risk, c.Changed, plan.Bytes(c.Because())})
	}
	return Encode(struct {
		Changes []entry `json:"changes"`
	}{out})
}
