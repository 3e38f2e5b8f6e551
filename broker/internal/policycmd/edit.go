package policycmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/explain"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// changeRow is one difference as it is shown.
type changeRow struct {
	Key    string `json:"key"`
	Old    string `json:"old"`
	New    string `json:"new"`
	Origin string `json:"origin,omitempty"`
	Widens bool   `json:"widens"`
}

func changeRows(lists ...[]policy.Change) []changeRow {
	out := []changeRow{}
	for _, list := range lists {
		for _, c := range list {
			row := changeRow{Key: c.Key, Old: c.Old, New: c.New, Widens: c.Widens}
			if c.Origin.File != "" {
				row.Origin = c.Origin.String()
			}
			out = append(out, row)
		}
	}
	return out
}

// edited is the answer of every verb that changes a file.
type edited struct {
	File     string      `json:"file"`
	DryRun   bool        `json:"dry_run"`
	Changed  bool        `json:"changed"`
	Changes  []changeRow `json:"changes"`
	Notes    []string    `json:"notes"`
	Unmapped []skipped   `json:"unmapped,omitempty"`
}

// skipped is an imported value that has no equivalent.
type skipped struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

func (u skipped) text() string {
	return "not taken over: " + quoting.Quote(u.Name) + ": " + u.Why + "\n"
}

func (e *edited) note(format string, a ...any) { e.Notes = append(e.Notes, fmt.Sprintf(format, a...)) }

// print shows the difference; a widening is marked.
func (e *edited) print(t Commands, js bool) {
	if js {
		if e.Notes == nil {
			e.Notes = []string{}
		}
		t.Print(command.Encode(e))
		return
	}
	t.Print(changesText(e.Changes))
	for _, u := range e.Unmapped {
		t.Print(u.text())
	}
	for _, n := range e.Notes {
		t.Warn(n)
	}
	switch {
	case e.DryRun:
		t.Warn("dry run: " + quoting.Quote(e.File) + " was not changed")
	case e.Changed:
		t.Warn("changed " + quoting.Quote(e.File))
	default:
		t.Warn(quoting.Quote(e.File) + " says that already")
	}
}

func changesText(rows []changeRow) string {
	if len(rows) == 0 {
		return "no effective difference\n"
	}
	var b strings.Builder
	widens := false
	for _, c := range rows {
		mark := " "
		if c.Widens {
			mark, widens = "!", true
		}
		where := ""
		if c.Origin != "" {
			where = "  # " + quoting.Quote(c.Origin)
		}
		switch {
		case c.Key == "rule" && c.Old == "(none)":
			fmt.Fprintf(&b, "%s + %s%s\n", mark, quoting.ASCII(c.New), where)
		case c.Key == "rule":
			fmt.Fprintf(&b, "%s - %s%s\n", mark, quoting.ASCII(c.Old), where)
		default:
			fmt.Fprintf(&b, "%s %s: %s -> %s%s\n", mark, quoting.ASCII(c.Key), quoting.ASCII(c.Old), quoting.ASCII(c.New),
				where)
		}
	}
	if widens {
		b.WriteString("! may grant something that was not granted\n")
	}
	return b.String()
}

// carryOut changes the file, or with --dry-run only computes what it would become.
func (c *policyCall) carryOut(g edit.Target, change func([]byte) ([]byte, error)) (old, next []byte, err error) {
	if c.r.DryRun {
		if old, err = g.Content(); err == nil {
			next, err = change(old)
		}
		return old, next, err
	}
	err = g.Edit(func(b []byte) ([]byte, error) {
		old = b
		next, err = change(b)
		return next, err
	})
	if errors.Is(err, fs.ErrPermission) && g.Scope == policy.ScopeOrg {
		err = option.Wrong(err.Error(), "only root changes the organisation's policy")
	}
	return old, next, err
}

// changeRules carries out a change of the scope's policy.toml and says what it does to what is in force.
func (t Commands) changeRules(c *policyCall, layers policy.Layers, change func([]byte) ([]byte,
	error)) (edited, policy.Store, error) {
	g, err := c.target("policy.toml", !c.r.DryRun)
	if err != nil {
		return edited{}, policy.Store{}, err
	}
	e := edited{File: g.Path(), DryRun: c.r.DryRun}
	old, next, err := c.carryOut(g, change)
	if err != nil {
		return e, policy.Store{}, err
	}
	was, err := policy.ParseRules(old, g.Path(), g.Scope, c.src.Vars)
	if err != nil {
		return e, policy.Store{}, err
	}
	is, err := policy.ParseRules(next, g.Path(), g.Scope, c.src.Vars)
	if err != nil {
		return e, policy.Store{}, err
	}
	e.Changed = string(old) != string(next)
	before, after := layers.Policy.Replace(g.Scope, was), layers.Policy.Replace(g.Scope, is)
	if g.Scope == policy.ScopeProject && e.Changed {
		if after.ProjectTrusted = false; layers.Trusted {
			e.note("the project's files are no longer the ones you trusted: run sbx policy trust")
		}
	}
	holds, err := policy.Merge(layers, nil)
	if err != nil {
		return e, policy.Store{}, err
	}
	before, said := holds.Bound(before)
	after, ignored := holds.Bound(after)
	for _, n := range ignored {
		if !slices.Contains(said, n) {
			e.note("%s", n)
		}
	}
	e.Changes = changeRows(policy.DiffRules(before, after))
	return e, after, nil
}

// pattern completes what was typed: what kind it is, and an absolute path. It refuses a name that could be a file's as
// well as a host's: a rule about the wrong one would look like the other.
func (c *policyCall) pattern(word string) (policy.Kind, string, error) {
	kind := policy.Kind(c.kind)
	if kind == "" {
		sure := false
		if kind, sure = explain.KindOf(word, c.facts.Cwd); !sure {
			return "", "", explain.Ambiguous(word)
		}
	}
	if kind == policy.KindHost || word == "" || strings.IndexByte("/~$@", word[0]) >= 0 {
		return kind, c.short(word), nil
	}
	// Only leading dots have one meaning; .. after a wildcard is for the parser to refuse.
	dir := c.facts.Cwd
	for {
		if rest, up := strings.CutPrefix(word+"/", "../"); up {
			dir, word = path.Dir(dir), strings.TrimSuffix(rest, "/")
		} else if rest, here := strings.CutPrefix(word+"/", "./"); here {
			word = strings.TrimSuffix(rest, "/")
		} else {
			break
		}
	}
	return kind, c.short(strings.TrimSuffix(pathname.Escape(dir)+"/"+word, "/")), nil
}

// short writes a user's rule with ~ and a project's with $PROJECT, as people would.
func (c *policyCall) short(p string) string {
	v := policy.Vars{}
	switch c.scope {
	case "user":
		v.Home = c.src.Vars.Home
	case "project":
		v.Project = c.src.Vars.Project
	}
	return v.Short(p)
}

func policyAdd(t Commands, c *policyCall) int {
	if len(c.words) < 2 || c.r.JSON && len(c.words) > 2 {
		return t.Fail(option.Wrong("usage: sbx policy add allow|deny|ask PATTERN... (with --json one)",
			"put the pattern in quotes, so that the shell leaves it alone: sbx policy add allow '~/data/**'"))
	}
	decision, err := policy.ParseDecision(c.words[0])
	if err == nil && decision == policy.Reveal {
		err = option.Wrong("sbx policy add shows no secret", "sbx secret allow PATH does, one file at a time")
	}
	if err != nil {
		return t.Fail(err)
	}
	r := policy.Rule{Access: policy.Access(c.access), Decision: decision, Label: c.label, Accepts: c.accepts,
		Decoy: c.decoy, Reason: c.reason, By: fmt.Sprintf("sbx policy add, uid %d", c.facts.UID),
		Added: c.now.UTC().Truncate(time.Second)}
	if c.life != "" {
		d, err := time.ParseDuration(c.life)
		if err != nil || d <= 0 {
			return t.Fail(option.Wrong("--for "+quoting.Quote(c.life)+" is not a duration such as 90m or 24h", ""))
		}
		r.Expires = c.now.Add(d).UTC().Truncate(time.Second)
	}
	rules := []policy.Rule{}
	for _, w := range c.words[1:] {
		if r.Kind, r.Pattern, err = c.pattern(w); err != nil {
			return t.Fail(err)
		}
		rules = append(rules, r)
	}
	for _, r := range rules {
		if status := t.addOne(c, r); status != 0 {
			return status
		}
	}
	return 0
}

// addOne adds one rule and shows what that changes.
func (t Commands) addOne(c *policyCall, r policy.Rule) int {
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	vars := c.src.Vars
	vars.Narrow = c.scope == "project"
	if r, err = policy.NewRule(r, vars); err != nil {
		return t.Fail(fmt.Errorf("adding rule: %w", err))
	}
	r.Origin.Scope = c.scopeOf()
	opened, err := opens(s, r)
	if err != nil {
		return t.Fail(err)
	}
	g, err := c.target("policy.toml", false)
	if err != nil {
		return t.Fail(err)
	}
	e, after, err := t.changeRules(c, s.Layers, edit.Adding(g, vars, r))
	if err != nil {
		return t.Fail(err)
	}
	if opened != "" {
		e.note("%s", opened)
	}
	c.remarks(&e, r, after)
	e.print(t, c.r.JSON)
	return 0
}

// opens says what an allow rule does about what is hidden, or refuses it where only the organisation could say it.
func opens(s request.Settings, r policy.Rule) (string, error) {
	if r.Decision != policy.Allow || r.Kind == policy.KindHost {
		return "", nil
	}
	for _, h := range s.Concealed() {
		org := r
		org.Origin.Scope = policy.ScopeOrg
		switch {
		case h.Kind == policy.KindSocket != (r.Kind == policy.KindSocket) || !h.Explicit(org):
		case h.OrgOnly && r.Origin.Scope != policy.ScopeOrg:
			return "", option.Wrong(quoting.ASCII(r.Pattern)+" cannot be allowed: "+h.Reason,
				"only the organisation's policy (/etc/sbx/policy.toml) can open it")
		case !h.Sealed():
			return "this opens what is hidden otherwise: " + quoting.ASCII(r.Pattern) + " (" + h.Reason + ")", nil
		default:
			return "", option.Wrong(quoting.ASCII(r.Pattern)+" cannot be allowed: it is a secret ("+h.Reason+
				"), and no rule shows one", "copy what the program needs to a place of its own and allow that"+useOf(h))
		}
	}
	project := s.Vars.Project
	if p, ok := r.Path().Literal(); ok && r.Kind != policy.KindSocket && project != "" && host.Within(p, project) {
		if f := request.SecretIn(&planner.Input{FS: host.FS{}}, project, p); f.Hidden {
			return "", option.Wrong(quoting.ASCII(r.Pattern)+" cannot be allowed: it is a secret ("+f.Reason()+
				"), and no rule shows one", "copy what the program needs to a name that is no secret's")
		}
	}
	return "", nil
}

// useOf completes the hint about a secret that is to be used.
func useOf(h policy.Hiding) string {
	if strings.HasPrefix(h.Pattern, "~/.ssh") {
		return "; " + explain.UseOfSSH
	}
	return ""
}

// remarks are what somebody who adds a rule may not expect.
func (c *policyCall) remarks(e *edited, r policy.Rule, after policy.Store) {
	if p := r.Path().String(); r.Kind == policy.KindPath && !strings.HasSuffix(r.Pattern, "*") {
		if st, err := os.Stat(p); err == nil && st.IsDir() {
			e.note("the rule is about the directory itself; %s covers what is in it",
				quoting.Quote(strings.TrimSuffix(r.Pattern, "/")+"/**"))
		}
	}
	if c.scope == "project" && r.Decision == policy.Allow {
		e.note("a project's rule that allows counts only after sbx policy trust")
		return
	}
	if r.Kind == policy.KindHost || strings.Contains(r.Path().String(), "*") {
		return
	}
	q := policy.Query{Kind: r.Kind, Path: r.Path().String(), Access: r.Access, Now: c.now}
	if hit, ok := after.Match(q); ok && hit.Decision != r.Decision {
		e.note("another rule is stronger here: %s (%s)", quoting.Quote(hit.String()), hit.Origin)
	}
	q.Runs = func(string) bool { return false }
	if hit, ok := after.Match(q); ok && r.Program != "" && hit.Decision == policy.Reveal {
		e.note("another rule shows it to every program: %s (%s)", quoting.Quote(hit.String()), hit.Origin)
	}
}

func policyRemove(t Commands, c *policyCall) int {
	if len(c.words) != 1 {
		return t.Fail(c.usage("remove PATTERN [--access ACCESS] [--scope SCOPE] [--dry-run]"))
	}
	kind, pattern, err := c.pattern(c.words[0])
	if err != nil {
		return t.Fail(err)
	}
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	vars := c.src.Vars
	vars.Narrow = c.scope == "project"
	g, err := c.target("policy.toml", false)
	if err != nil {
		return t.Fail(err)
	}
	e, _, err := t.changeRules(c, s.Layers, edit.Removing(g, vars, func(r policy.Rule) bool {
		same := r.Pattern == pattern || r.Pattern == c.words[0]
		if r.Kind != policy.KindHost && kind != policy.KindHost {
			if p, err := pathname.ParsePattern(pattern, vars); err == nil && p.String() == r.Path().String() {
				same = true
			}
		}
		return same && (c.kind == "" || r.Kind == kind) && (c.access == "" || string(r.Access) == c.access)
	}))
	if err != nil {
		return t.Fail(option.Wrong(err.Error(), "sbx policy show lists the rules"))
	}
	e.print(t, c.r.JSON)
	return 0
}
