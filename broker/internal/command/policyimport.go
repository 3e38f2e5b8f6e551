package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/option"
	"sbx/broker/internal/policy"
)

func policyImport(t *Term, c *policyCall) int {
	if len(c.words) != 2 {
		return t.Fail(c.usage("import " + strings.Join(policy.Formats(), "|") + "|policy FILE [--scope SCOPE] [--dry-run]"))
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
	all := []edited{}
	var unmapped []skipped
	for _, u := range im.Unmapped {
		unmapped = append(unmapped, skipped{u.Name, u.Why})
	}
	im.Rules = slices.DeleteFunc(im.Rules, func(r policy.Rule) bool {
		if r.Origin.Scope = c.scopeOf(); r.Path().String() == "" {
			return false // of a host
		}
		_, err := opens(s, r)
		if err != nil {
			unmapped = append(unmapped, skipped{r.String(), err.Error()})
		}
		return err != nil
	})
	if len(im.Rules) > 0 {
		g, err := c.target("policy.toml", false)
		if err != nil {
			return t.Fail(err)
		}
		for i := range im.Rules {
			im.Rules[i].Origin = policy.Origin{}
			im.Rules[i].By, im.Rules[i].Added = "sbx policy import "+c.words[0], c.now.UTC().Truncate(time.Second)
		}
		e, _, err := t.changeRules(c, s.Layers, policy.Adding(g, vars, im.Rules...))
		if err != nil {
			return t.Fail(err)
		}
		all = append(all, e)
	}
	if len(im.Config) > 0 {
		e, err := t.changeSettings(c, s.Layers, im.Config, vars)
		if err != nil {
			return t.Fail(err)
		}
		all = append(all, e)
	}
	if c.r.JSON {
		for i := range all {
			if all[i].Notes == nil {
				all[i].Notes = []string{}
			}
		}
		t.Print(Encode(struct {
			Files    []edited  `json:"files"`
			Unmapped []skipped `json:"unmapped"`
		}{all, append([]skipped{}, unmapped...)}))
		return 0
	}
	for i := range all {
		all[i].print(t, false)
	}
	for _, u := range unmapped {
		t.Print("not taken over: " + quote(u.Name) + ": " + u.Why + "\n")
	}
	if len(all) == 0 {
		t.Warn("nothing of it maps to a setting or rule of sbx")
	}
	return 0
}

// imported reads the file: "policy" is one of sbx's own, such as sbx run --learn writes.
func (c *policyCall) imported(data []byte, vars policy.Vars) (policy.Imported, error) {
	if c.words[0] != "policy" {
		return policy.Import(c.words[0], data, vars)
	}
	rules, err := policy.ParseRules(data, c.words[1], c.scopeOf(), vars)
	return policy.Imported{Rules: rules}, err
}

// changeSettings adds settings to the scope's config.toml and says what that does.
func (t *Term) changeSettings(c *policyCall, layers policy.Layers, list []policy.Setting,
	vars policy.Vars) (edited, error) {
	g, err := c.target("config.toml", !c.r.DryRun)
	if err != nil {
		return edited{}, err
	}
	e := edited{File: g.Path(), DryRun: c.r.DryRun}
	old, next, err := c.carryOut(g, func(b []byte) ([]byte, error) {
		out, taken, err := policy.AddSettings(b, g.Path(), g.Scope, list, vars)
		e.Unmapped = nil
		for _, u := range taken {
			e.Unmapped = append(e.Unmapped, skipped{u.Name, u.Why})
		}
		return out, err
	})
	if err != nil {
		return e, err
	}
	e.Changed = string(old) != string(next)
	effective := func(data []byte) (policy.Effective, error) {
		l := layers
		layer, err := policy.ParseConfig(data, g.Path(), g.Scope, c.src.Vars)
		if err != nil {
			return policy.Effective{}, err
		}
		switch g.Scope {
		case policy.ScopeOrg:
			l.Org = layer
		case policy.ScopeProject:
			l.Project = layer
			l.Trusted = l.Trusted && !e.Changed
		default:
			l.User = layer
		}
		return policy.Merge(l, nil)
	}
	before, err := effective(old)
	if err != nil {
		return e, err
	}
	after, err := effective(next)
	if err != nil {
		return e, err
	}
	e.Changes = changeRows(policy.Diff(before, after))
	return e, nil
}

// readInput reads FILE, or standard input for "-".
func (t *Term) readInput(name string) ([]byte, error) {
	if name != "-" {
		return policy.ReadFile(name)
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
