package policycmd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/policy/foreign"
	"sbx.example/sbx/broker/internal/policy/ownfile"
	"sbx.example/sbx/broker/internal/request"
)

func policyImport(t Commands, c *policyCall) int {
	if len(c.words) != 2 {
		return t.Fail(c.usage("import " + strings.Join(foreign.Formats(), "|") + "|policy FILE [--scope SCOPE] [--dry-run]"))
	}
	data, err := t.readInput(c.words[1])
	if err != nil {
		return t.Fail(err)
	}
	vars := c.src.Vars
	vars.Narrow = c.scope == "project"
	im, err := c.imported(data, vars)
	if err != nil {
		return t.Fail(err)
	}
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	out := importing{Files: []edited{}, Unmapped: []skipped{}}
	for _, u := range im.Unmapped {
		out.Unmapped = append(out.Unmapped, skipped{u.Name, u.Why})
	}
	im.Rules = out.withoutSecrets(s, im.Rules, c.scopeOf())
	if len(im.Rules) > 0 {
		e, err := t.importRules(c, s.Layers, im.Rules, vars)
		if err != nil {
			return t.Fail(err)
		}
		out.Files = append(out.Files, e)
	}
	if len(im.Config) > 0 {
		e, err := t.changeSettings(c, s.Layers, im.Config, vars)
		if err != nil {
			return t.Fail(err)
		}
		out.Files = append(out.Files, e)
	}
	out.print(t, c.r.JSON)
	return 0
}

// importing is what became of another tool's settings.
type importing struct {
	Files    []edited  `json:"files"`
	Unmapped []skipped `json:"unmapped"`
}

// withoutSecrets takes out the rules that would open what no rule may.
func (x *importing) withoutSecrets(s request.Settings, rules []policy.Rule, scope policy.Scope) []policy.Rule {
	return slices.DeleteFunc(rules, func(r policy.Rule) bool {
		if r.Origin.Scope = scope; r.Path().String() == "" {
			return false // of a host
		}
		_, err := opens(s, r)
		if err != nil {
			x.Unmapped = append(x.Unmapped, skipped{r.String(), err.Error()})
		}
		return err != nil
	})
}

func (x *importing) print(t Commands, js bool) {
	if js {
		for i := range x.Files {
			if x.Files[i].Notes == nil {
				x.Files[i].Notes = []string{}
			}
		}
		t.Print(command.Encode(x))
		return
	}
	for i := range x.Files {
		x.Files[i].print(t, false)
	}
	for _, u := range x.Unmapped {
		t.Print(u.text())
	}
	if len(x.Files) == 0 {
		t.Warn("nothing of it maps to a setting or rule of sbx")
	}
}

// importRules adds rules to the scope's policy.toml and says what that does.
func (t Commands) importRules(c *policyCall, layers policy.Layers, rules []policy.Rule,
	vars policy.Vars) (edited, error) {
	g, err := c.target("policy.toml", false)
	if err != nil {
		return edited{}, err
	}
	for i := range rules {
		rules[i].Origin = policy.Origin{}
		rules[i].By, rules[i].Added = "sbx policy import "+c.words[0], c.now.UTC().Truncate(time.Second)
	}
	e, _, err := t.changeRules(c, layers, edit.Adding(g, vars, rules...))
	return e, err
}

// imported reads the file: "policy" is one of sbx's own, such as sbx run --learn writes.
func (c *policyCall) imported(data []byte, vars policy.Vars) (foreign.Imported, error) {
	if c.words[0] != "policy" {
		return foreign.Import(c.words[0], data, vars)
	}
	rules, err := policy.ParseRules(data, c.words[1], c.scopeOf(), vars)
	return foreign.Imported{Rules: rules}, err
}

// changeSettings adds settings to the scope's config.toml and says what that does.
func (t Commands) changeSettings(c *policyCall, layers policy.Layers, list []policy.Setting,
	vars policy.Vars) (edited, error) {
	g, err := c.target("config.toml", !c.r.DryRun)
	if err != nil {
		return edited{}, err
	}
	var taken []edit.Unmapped
	e, err := c.changeConfig(g, layers, func(b []byte) (out []byte, err error) {
		out, taken, err = edit.AddSettings(b, g.Path(), g.Scope, list, vars)
		return out, err
	})
	for _, u := range taken {
		e.Unmapped = append(e.Unmapped, skipped{u.Name, u.Why})
	}
	return e, err
}

// changeConfig changes the config.toml g and says what that does to what is in force. A file that no command could use
// is not written; one that is so already is compared with none, so that it can be mended.
func (c *policyCall) changeConfig(g edit.Target, layers policy.Layers, change func([]byte) ([]byte, error)) (edited,
	error) {
	e := edited{File: g.Path(), DryRun: c.r.DryRun}
	var after policy.Effective
	old, next, err := c.carryOut(g, func(b []byte) ([]byte, error) {
		out, err := change(b)
		if err == nil {
			after, err = c.effective(g, layers, out, string(b) != string(out))
		}
		return out, err
	})
	if err != nil {
		return e, err
	}
	e.Changed = string(old) != string(next)
	before, err := c.effective(g, layers, old, e.Changed)
	if err != nil {
		before, err = c.effective(g, layers, nil, e.Changed)
	}
	if err != nil {
		return e, err
	}
	e.Changes = changeRows(policy.Diff(before, after))
	return e, nil
}

// effective is what is in force if g holds data.
func (c *policyCall) effective(g edit.Target, l policy.Layers, data []byte, changed bool) (policy.Effective, error) {
	layer, err := policy.ParseConfig(data, g.Path(), g.Scope, c.src.Vars)
	if err != nil {
		return policy.Effective{}, err
	}
	switch g.Scope {
	case policy.ScopeOrg:
		l.Org = layer
	case policy.ScopeProject:
		l.Project = layer
		l.Trusted = l.Trusted && !changed
	default:
		l.User = layer
	}
	return policy.Merge(l, nil)
}

// readInput reads FILE, or standard input for "-".
func (t Commands) readInput(name string) ([]byte, error) {
	if name != "-" {
		return ownfile.Named(name)
	}
	if t.Std[0] == nil {
		return nil, option.Wrong("there is no standard input", "")
	}
	var st unix.Stat_t
	if unix.Fstat(int(t.Std[0].Fd()), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil, option.Wrong("standard input is a directory", "")
	}
	b, err := io.ReadAll(io.LimitReader(t.Std[0], 1<<20+1))
	if err == nil && len(b) > 1<<20 {
		err = errors.New("more than 1 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return b, nil
}
