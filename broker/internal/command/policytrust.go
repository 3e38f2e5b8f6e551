package command

import (
	"bufio"
	"io"
	"os"
	"strings"

	"sbx/broker/internal/launch"
	"sbx/broker/internal/option"
	"sbx/broker/internal/policy"
)

// policyTrust shows what the project's files change, against what the user trusted before or else against no trust,
// and pins the very bytes that were shown.
func policyTrust(t *Term, c *policyCall) int {
	if len(c.words) > 0 {
		return t.Fail(c.usage("trust [--yes] [--revoke] [--dry-run]"))
	}
	dir := c.src.TrustDir
	if c.src.ProjectDir == "" || dir == "" {
		return t.Fail(option.Wrong("there is no project here", "cd into one, or pass --workdir DIR"))
	}
	if c.revoke {
		if !c.r.DryRun {
			if err := policy.Unpin(dir, c.src.ProjectDir, c.src.UID); err != nil {
				return t.Fail(err)
			}
		}
		t.Warn("not trusted: " + quote(c.src.ProjectDir) + "; its files can only narrow")
		return 0
	}
	layers, err := policy.Load(c.src)
	if err != nil {
		return t.Fail(err)
	}
	if layers.Pinned[0] == nil && layers.Pinned[1] == nil {
		return t.Fail(option.Wrong("there is nothing to trust: "+quote(c.src.ProjectDir)+
			" has no .sbx/config.toml or .sbx/policy.toml", ""))
	}
	before, since, err := t.trustedBefore(c, layers)
	if err != nil {
		return t.Fail(err)
	}
	rows, err := trustDifference(before, layers.WithTrust(true))
	if err != nil {
		return t.Fail(err)
	}
	answer := struct {
		Project string      `json:"project"`
		Since   string      `json:"since"` // "untrusted" or "trusted": what the changes are against
		Config  string      `json:"config_hash"`
		Policy  string      `json:"policy_hash"`
		Trusted bool        `json:"trusted"`
		Changes []changeRow `json:"changes"`
	}{c.src.ProjectDir, since, layers.Pins.Config, layers.Pins.Policy, layers.Trusted, rows}
	if !c.r.JSON {
		if layers.Trusted {
			t.Warn(quote(c.src.ProjectDir) + " is trusted already, and unchanged since")
			return 0
		}
		if since == "trusted" {
			t.Print("what changed since you trusted " + quote(c.src.ProjectDir) + ":\n")
		} else {
			t.Print("what trusting " + quote(c.src.ProjectDir) + " changes:\n")
		}
		t.Print(changesText(rows))
	}
	if c.r.DryRun || layers.Trusted {
		if c.r.JSON {
			t.Print(Encode(answer))
		}
		return 0
	}
	if !c.yes && !t.confirm("trust these files?") {
		return t.Fail(option.Wrong("not trusted", "sbx policy trust --yes pins what is shown without asking"))
	}
	// The bytes first: without them a pin still holds, it only cannot be compared with later.
	if err := policy.Keep(dir, layers.Pinned, c.src.UID); err != nil {
		return t.Fail(err)
	}
	if err := policy.Pin(dir, c.src.ProjectDir, layers.Pins, c.src.UID); err != nil {
		return t.Fail(err)
	}
	if answer.Trusted = true; c.r.JSON {
		t.Print(Encode(answer))
		return 0
	}
	t.Warn("trusted: " + quote(c.src.ProjectDir) + " as its files are now; a change of them voids it")
	return 0
}

// trustedBefore is what holds without the trust that is asked for.
func (t *Term) trustedBefore(c *policyCall, layers policy.Layers) (policy.Layers, string, error) {
	list, err := policy.LoadTrust(c.src.TrustDir, c.src.UID)
	if err != nil {
		return layers, "", err
	}
	if pins, ok := list.Pinned(c.src.ProjectDir); ok && pins != layers.Pins {
		if files, ok := policy.Kept(c.src.TrustDir, pins, c.src.UID); ok {
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
	return changeRows(policy.Diff(a, b), policy.DiffRules(before.Policy, after.Policy)), nil
}

// confirm asks on the terminal; without one the answer is no.
func (t *Term) confirm(question string) bool {
	if t.Std[0] == nil || !launch.HasTerminal([3]*os.File{t.Std[0]}) {
		return false
	}
	t.Note("sbx: " + question + " [y/N] ")
	line, _ := bufio.NewReader(io.LimitReader(t.Std[0], 256)).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}
