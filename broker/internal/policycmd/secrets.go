package policycmd

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/quoting"
)

// secretRow is one name or place that does not exist inside.
type secretRow struct {
	Where   string `json:"where"` // host: a place of the host's; project: a name anywhere in a writable tree
	Pattern string `json:"pattern"`
	Reason  string `json:"reason"`
	Origin  string `json:"origin"`
}

// policySecrets lists what is hidden: places of the host, and names in what may be written.
func policySecrets(t Commands, c *policyCall) int {
	if len(c.words) > 0 {
		return t.Fail(c.usage("secrets [--json]"))
	}
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	rows := []secretRow{}
	for _, h := range s.Concealed() {
		origin := "built-in"
		if h.Origin.File != "" {
			origin = h.Origin.String()
		}
		rows = append(rows, secretRow{"host", h.Pattern, h.Reason, origin})
	}
	for _, n := range guard.Secrets() {
		reason := n.Why
		if n.Holds != nil {
			reason += ", where its contents are one"
		}
		rows = append(rows, secretRow{"project", n.Pattern, reason, "built-in"})
	}
	if c.r.JSON {
		t.Print(command.Encode(struct {
			Secrets []secretRow `json:"secrets"`
		}{rows}))
		return 0
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Where, quoting.Quote(r.Pattern), quoting.ASCII(r.Reason),
			quoting.ASCII(r.Origin))
	}
	w.Flush()
	t.Say(b.String())
	return 0
}
