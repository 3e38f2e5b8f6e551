package policycmd

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/explain"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/foreign"
	"sbx.example/sbx/broker/internal/policy/ownfile"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/quoting"
)

func policyExport(t Commands, c *policyCall) int {
	if len(c.words) > 0 {
		return t.Fail(c.usage("export [--format " + strings.Join(foreign.Exports(), "|") + "]"))
	}
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	text, missing, err := foreign.Export(cmp.Or(c.format, "toml"), s.Effective, s.Layers.Policy, secretNames())
	if err != nil {
		return t.Fail(err)
	}
	if c.r.JSON {
		list := []skipped{}
		for _, u := range missing {
			list = append(list, skipped{u.Name, u.Why})
		}
		t.Print(command.Encode(struct {
			Text     string    `json:"text"`
			Unmapped []skipped `json:"unmapped"`
		}{text, list}))
		return 0
	}
	t.Print(text)
	for _, u := range missing {
		t.Warn("not in the export: " + quoting.Quote(u.Name) + ": " + u.Why)
	}
	return 0
}

// secretNames are those that say by themselves that a file holds a credential.
func secretNames() []string {
	var out []string
	for _, s := range guard.Secrets() {
		if s.Holds == nil {
			out = append(out, s.Pattern)
		}
	}
	return out
}

// candidate is one file of `sbx policy diff`: the layers as they would be with it in its scope.
func (c *policyCall) candidate(layers policy.Layers, file string) (policy.Layers, error) {
	data, err := ownfile.Named(file)
	if err != nil {
		return layers, err
	}
	abs, _ := filepath.Abs(file)
	scope := c.scopeOf()
	vars := c.src.Vars
	isConfig := filepath.Base(file) == "config.toml"
	if filepath.Base(file) != "policy.toml" && !isConfig {
		_, err := policy.ParseRules(data, abs, scope, vars)
		_, other := policy.ParseConfig(data, abs, scope, vars)
		isConfig = err != nil && other == nil
	}
	if !isConfig {
		rules, err := policy.ParseRules(data, abs, scope, vars)
		if err != nil {
			return layers, err
		}
		layers.Policy = layers.Policy.Replace(scope, rules)
		return layers, nil
	}
	layer, err := policy.ParseConfig(data, abs, scope, vars)
	if err != nil {
		return layers, err
	}
	switch scope {
	case policy.ScopeOrg:
		layers.Org = layer
	case policy.ScopeProject:
		layers.Project = layer
	default:
		layers.User = layer
	}
	return layers, nil
}

func policyDiff(t Commands, c *policyCall) int {
	if len(c.words) < 1 || len(c.words) > 2 {
		return t.Fail(c.usage("diff [OLD] NEW [--scope SCOPE]"))
	}
	before, err := policy.Load(c.src)
	if err != nil {
		return t.Fail(err)
	}
	after, err := c.candidate(before, c.words[len(c.words)-1])
	if err == nil && len(c.words) == 2 {
		before, err = c.candidate(before, c.words[0])
	}
	if err != nil {
		return t.Fail(err)
	}
	rows, err := trustDifference(before, after)
	if err != nil {
		return t.Fail(err)
	}
	if c.r.JSON {
		t.Print(command.Encode(struct {
			Changes []changeRow `json:"changes"`
		}{rows}))
		return 0
	}
	t.Print(changesText(rows))
	return 0
}

// replayRow is one past access that the new rules would decide differently.
type replayRow struct {
	ID     string `json:"id"` // SID:NUMBER of the record
	Op     string `json:"op"`
	Path   string `json:"path,omitempty"`
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`
	Then   string `json:"then"`
	Now    string `json:"now"`
	Rule   string `json:"rule,omitempty"`
	Origin string `json:"origin,omitempty"`
	Reason string `json:"reason"`
	Widens bool   `json:"widens"`
}

// policyReplay puts every decided access of a session to the rules of NEW, with everything else as it is now.
func policyReplay(t Commands, c *policyCall) int {
	if len(c.words) != 1 || c.log == "" {
		return t.Fail(c.usage("replay --log SID|FILE NEW [--scope SCOPE]"))
	}
	logs, err := t.LogsNamed([]string{c.log})
	if err != nil {
		return t.Fail(err)
	}
	rep, verr := audit.VerifyFile(logs[0])
	if verr != nil && len(rep.Problems) > 0 {
		t.Warn("the log does not verify, the answer is about what it says now: " + quoting.ASCII(rep.Problems[0].String()))
	}
	x, err := c.explainer(&c.r, c.facts, c.now)
	if err != nil {
		return t.Fail(err)
	}
	layers, err := c.candidate(x.Settings.Layers, c.words[0])
	if err != nil {
		return t.Fail(err)
	}
	x.Settings.Layers = layers
	if x.Settings.Effective, err = policy.Merge(layers, nil); err != nil {
		return t.Fail(err)
	}
	x.Settings.Layers.Policy, _ = x.Settings.Bound(layers.Policy)
	if err = x.Refresh(c.now); err != nil {
		return t.Fail(err)
	}
	x.Env.Static = false // what would not be granted is asked about, as the log shows questions
	rows, total, err := replay(x, logs[0])
	if err != nil {
		return t.Fail(err)
	}
	widened := 0
	for _, r := range rows {
		if r.Widens {
			widened++
		}
	}
	if c.r.JSON {
		t.Print(command.Encode(struct {
			Log      string      `json:"log"`
			Accesses int         `json:"accesses"`
			Widened  int         `json:"widened"`
			Changes  []replayRow `json:"changes"`
		}{logs[0], total, widened, rows}))
		return 0
	}
	for _, r := range rows {
		t.Print(r.text())
	}
	t.Print(fmt.Sprintf("%d accesses, %d decided differently, %d widened\n", total, len(rows), widened))
	return 0
}

func (r replayRow) text() string {
	mark, what := " ", r.Path
	if r.Widens {
		mark = "!"
	}
	if r.Host != "" {
		what = fmt.Sprintf("%s:%d", r.Host, r.Port)
	}
	s := fmt.Sprintf("%s %s %s: %s -> %s (%s", mark, r.Op, quoting.Quote(what), r.Then, r.Now, quoting.ASCII(r.Reason))
	if r.Rule != "" {
		s += "; " + quoting.ASCII(r.Rule) + ", " + quoting.ASCII(r.Origin)
	}
	return s + ") " + r.ID + "\n"
}

// replay puts what was decided to the rules; a decision with somebody's answer in it was a question.
func replay(x *explain.Explainer, log string) ([]replayRow, int, error) {
	rows, total := []replayRow{}, 0
	seen := map[string]bool{}
	for e, err := range audit.Query(log, audit.Filter{Kinds: []string{audit.KindAllow, audit.KindDeny}}) {
		if err != nil || e.Path == "" && e.Host == "" {
			continue
		}
		total++
		q := decide.Ask{Op: e.Op, Path: e.Path, Host: e.Host, Port: e.Port, Kind: policy.KindPath}
		switch {
		case e.Host != "":
			q.Kind = policy.KindHost
		case policy.AccessOf(e.Op) == policy.Connect:
			q.Kind = policy.KindSocket
		}
		if strings.HasPrefix(e.Reason, decide.TemporaryOf) { // nothing of the host's had the name
			q.Of = pathname.Originals(q.Path, false)
		}
		v := decide.Decide(q, x.Env)
		then := e.Kind
		if wasAsked(&e) {
			then = "ask"
		}
		row := replayRow{ID: fmt.Sprintf("%s:%d", e.Session, e.Seq), Op: e.Op, Path: e.Path, Host: e.Host, Port: e.Port,
			Then: then, Now: v.Decision.String(),
			Rule: v.Rule, Origin: v.Origin, Reason: v.Reason, Widens: rank(v.Decision.String()) < rank(then)}
		if then == "ask" {
			row.Then += ", answered " + e.Kind
		}
		if v.Decision.String() == then || seen[row.text()[:len(row.text())-len(row.ID)-1]] {
			continue
		}
		seen[row.text()[:len(row.text())-len(row.ID)-1]] = true
		rows = append(rows, row)
	}
	return rows, total, nil
}

// wasAsked says whether a decision came from a question: from a person, or from nobody answering.
func wasAsked(e *audit.Event) bool {
	for _, kv := range e.Detail {
		if kv.K == "by" {
			return kv.V != prompt.ByPolicy
		}
	}
	return false
}

// rank orders decisions from wide to narrow.
func rank(decision string) int {
	switch decision {
	case "allow":
		return 0
	case "ask":
		return 1
	}
	return 2
}
