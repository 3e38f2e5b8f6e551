package policycmd

import (
	"fmt"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/trust"
	"sbx.example/sbx/broker/internal/quoting"
)

// policyTrust shows what the project's files change, against what the user trusted before or else against no trust,
// and pins the very bytes that were shown.
func policyTrust(t Commands, c *policyCall) int {
	if len(c.words) > 0 {
		return t.Fail(c.usage("trust [--yes] [--revoke] [--dry-run]"))
	}
	if c.src.ProjectDir == "" || c.src.TrustDir == "" {
		return t.Fail(option.Wrong("there is no project here", "cd into one, or pass --workdir DIR"))
	}
	if c.revoke {
		return t.revokeTrust(c)
	}
	layers, err := policy.Load(c.src)
	if err != nil {
		return t.Fail(err)
	}
	if layers.Pinned[0] == nil && layers.Pinned[1] == nil {
		return t.Fail(option.Wrong("there is nothing to trust: "+quoting.Quote(c.src.ProjectDir)+
			" has no .sbx/config.toml or .sbx/policy.toml", ""))
	}
	answer, err := t.trustAnswer(c, layers)
	if err != nil {
		return t.Fail(err)
	}
	if !c.r.JSON {
		t.showTrust(answer)
	}
	if answer.Trusted || c.r.DryRun {
		if c.r.JSON {
			t.Print(command.Encode(answer))
		}
		return 0
	}
	if !c.yes && !t.Confirm("trust these files?") {
		return t.Fail(option.Wrong("not trusted", "sbx policy trust --yes pins what is shown without asking"))
	}
	// The bytes first: without them a pin still holds, it only cannot be compared with later.
	if err := trust.Keep(c.src.TrustDir, layers.Pinned, c.src.UID); err != nil {
		return t.Fail(err)
	}
	if err := trust.Pin(c.src.TrustDir, c.src.ProjectDir, layers.Pins, c.src.UID); err != nil {
		return t.Fail(err)
	}
	if answer.Trusted = true; c.r.JSON {
		t.Print(command.Encode(answer))
		return 0
	}
	t.Warn("trusted: " + quoting.Quote(c.src.ProjectDir) + " as its files are now; a change of them voids it")
	return 0
}

// revokeTrust is policyTrust with --revoke.
func (t Commands) revokeTrust(c *policyCall) int {
	if !c.r.DryRun {
		if err := trust.Unpin(c.src.TrustDir, c.src.ProjectDir, c.src.UID); err != nil {
			return t.Fail(err)
		}
	}
	t.Warn("not trusted: " + quoting.Quote(c.src.ProjectDir) + "; its files can only narrow")
	return 0
}

// trusting is what trusting a project's files means.
type trusting struct {
	Project string      `json:"project"`
	Since   string      `json:"since"` // "untrusted" or "trusted": what the changes are against
	Config  string      `json:"config_hash"`
	Policy  string      `json:"policy_hash"`
	Trusted bool        `json:"trusted"`
	Changes []changeRow `json:"changes"`
	// Overridden would change too, if the person's own file did not set the same.
	Overridden []changeRow `json:"overridden"`
}

func (t Commands) trustAnswer(c *policyCall, layers policy.Layers) (trusting, error) {
	before, since, err := t.trustedBefore(c, layers)
	if err != nil {
		return trusting{}, err
	}
	rows, err := trustDifference(before, layers.WithTrust(true))
	mattersFirst(rows)
	return trusting{c.src.ProjectDir, since, layers.Pins.Config, layers.Pins.Policy, layers.Trusted, rows,
		overridden(before, layers.WithTrust(true), rows)}, err
}

// overridden are the differences that are not among rows because of what the person's own file sets. Where the
// settings cannot do without that, none are known.
func overridden(before, after policy.Layers, rows []changeRow) []changeRow {
	for _, l := range []*policy.Layers{&before, &after} {
		if l.User != nil {
			user := *l.User
			user.Settings, l.User = nil, &user
		}
	}
	all, err := trustDifference(before, after)
	if err != nil {
		return []changeRow{}
	}
	all = slices.DeleteFunc(all, func(r changeRow) bool {
		return r.Key == "rule" || slices.ContainsFunc(rows, func(x changeRow) bool { return x.Key == r.Key })
	})
	mattersFirst(all)
	return all
}

// showTrust prints it for people.
func (t Commands) showTrust(x trusting) {
	project := quoting.Quote(x.Project)
	if x.Trusted {
		t.Warn(project + " is trusted already, and unchanged since")
		return
	}
	head := "what trusting " + project + " changes"
	if x.Since == "trusted" {
		head = "what changed since you trusted " + project
	}
	t.Print(head + trustSummary(x.Changes) + ":\n" + changesText(x.Changes))
	if len(x.Overridden) > 0 {
		t.Print("without effect as long as your own settings say the same or otherwise:\n" + changesText(x.Overridden))
	}
}

// trustedBefore is what holds without the trust that is asked for.
func (t Commands) trustedBefore(c *policyCall, layers policy.Layers) (policy.Layers, string, error) {
	list, err := trust.Load(c.src.TrustDir, c.src.UID)
	if err != nil {
		return layers, "", err
	}
	if pins, ok := list.Pinned(c.src.ProjectDir); ok && pins != layers.Pins {
		if files, ok := trust.Kept(c.src.TrustDir, pins, c.src.UID); ok {
			if l, err := layers.WithProject(files, c.src.ProjectDir); err == nil {
				return l, "trusted", nil
			}
		}
	}
	return layers.WithTrust(false), "untrusted", nil
}

func trustDifference(before, after policy.Layers) ([]changeRow, error) {
	a, err := policy.Merge(before, nil)
	if err != nil {
		return nil, err
	}
	b, err := policy.Merge(after, nil)
	if err != nil {
		return nil, err
	}
	was, _ := a.Bound(before.Policy)
	is, _ := b.Bound(after.Policy)
	return changeRows(policy.Diff(a, b), policy.DiffRules(was, is)), nil
}

// mattersFirst puts what a project would be let do before what only narrows, and first what reaches out of it: the
// network, the host's sockets, what runs and what is written.
func mattersFirst(rows []changeRow) {
	weight := func(r changeRow) int {
		switch {
		case !r.Widens:
			return 2
		case r.Key == "rule" && strings.HasPrefix(r.New, "allow read "), r.Key == "rule" &&
			strings.HasPrefix(r.New, "allow list "), r.Key == "fs.read_only", strings.HasPrefix(r.Key, "limits."):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(rows, func(a, b changeRow) int { return weight(a) - weight(b) })
}

// trustSummary counts them.
func trustSummary(rows []changeRow) string {
	widens := 0
	for _, r := range rows {
		if r.Widens {
			widens++
		}
	}
	switch {
	case len(rows) == 0:
		return ""
	case widens == 0:
		return ", which only narrows"
	case widens == len(rows):
		return fmt.Sprintf(", %d to let it do more (!)", widens)
	}
	return fmt.Sprintf(", %d to let it do more (!) and %d that narrow", widens, len(rows)-widens)
}
