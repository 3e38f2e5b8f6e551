package policycmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/policy/foreign"
	"sbx.example/sbx/broker/internal/policy/ownfile"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// Commands are the commands about policy and configuration files.
type Commands struct{ *command.Term }

// policyCall is one `sbx policy VERB …`.
type policyCall struct {
	r                                              request.Request
	access, scope, kind, life, reason, format, log string
	label                                          string
	accepts                                        []string
	yes, revoke, decoy                             bool
	explainer                                      command.Explainer
	words                                          []string
	facts                                          host.Facts
	src                                            policy.Sources
	now                                            time.Time
}

// policyVerb is one row of the table of `sbx policy`.
type policyVerb struct {
	name, args, help string
	takes            string // the options it has, besides --workdir and --json
	words            []option.Word
	run              func(Commands, *policyCall) int
	aliases          []string
}

func policyVerbs() []policyVerb {
	file := []option.Word{{From: option.File}}
	decision := []option.Word{{Choices: []string{"allow", "deny", "ask"}}, {From: option.File}, {}}
	formats := []option.Word{{Choices: append(foreign.Formats(), "policy")}, {From: option.File}, {}}
	return []policyVerb{
		{"show", "", "list the rules in force and the tools, and where each comes from", "", nil, policyShow,
			[]string{"list"}},
		{"secrets", "", "list what is hidden, and why", "", nil, policySecrets, nil},
		{"check", "[FILE...]", "read the policy and configuration files, or FILE, and say what is wrong", "scope", file,
			policyCheck, nil},
		{"test", "PATH|HOST", "say what would be decided now", "access kind", file, policyTest, nil},
		{"add", "allow|deny|ask PATTERN...", "add rules; comments in the file are kept",
			"access kind scope for label accepts decoy reason dry-run", decision, policyAdd, nil},
		{"remove", "PATTERN", "remove the rules with this pattern", "access kind scope dry-run", file, policyRemove,
			[]string{"rm"}},
		{"import", "FORMAT FILE", "take over another tool's settings; what does not map is listed", "scope dry-run", formats,
			policyImport, nil},
		{"export", "", "write what is in force in one file", "format", nil, policyExport, nil},
		{"diff", "OLD NEW | NEW", "say what a policy or configuration file would change", "scope", file, policyDiff, nil},
		{"replay", "NEW", "say what the rules in NEW would have decided in a session", "log scope", file, policyReplay,
			nil},
		{"trust", "", "show what the project's files change, and pin their contents", "yes revoke dry-run", nil, policyTrust,
			nil},
	}
}

// options are those of all verbs.
func (c *policyCall) options() []option.Option {
	return []option.Option{
		{Name: "access", Arg: "ACCESS", Value: option.Choice(&c.access, "list", "read", "write", "exec", "connect"),
			Help: "list (names in a directory), read (the default), write, exec or connect"},
		{Name: "kind", Arg: "KIND", Value: option.Choice(&c.kind, "path", "exec", "host", "socket"),
			Help: "path, exec, host or socket, where the pattern does not say it"},
		{Name: "scope", Arg: "SCOPE", Value: option.Choice(&c.scope, "user", "project", "org"),
			Help: "user (the default), project or org"},
		c.scopeSwitch("user"), c.scopeSwitch("project"), c.scopeSwitch("org"),
		{Name: "for", Arg: "TIME", Value: option.Text(&c.life), Help: "the rule ends after this time (90m, 24h)"},
		{Name: "label", Arg: "LABEL", Value: option.Text(&c.label),
			Help: "of a path: after reading there the session asks about each host that does not accept LABEL"},
		{Name: "accepts", Arg: "LABEL", Value: option.List(&c.accepts), Help: "of a host or socket: it may hear of LABEL"},
		{Name: "decoy", Value: option.Switch(&c.decoy),
			Help: "of a denied file: a marked fake stands there, and reading it stops the session"},
		{Name: "reason", Arg: "TEXT", Value: option.Text(&c.reason), Help: "why, for those who read the file"},
		{Name: "format", Arg: "FORMAT", Value: option.Choice(&c.format, foreign.Exports()...),
			Help: "toml (the default), claude, codex, cursor or srt"},
		{Name: "log", Arg: "SID|FILE", Value: option.Text(&c.log).Of(option.Ended), Help: "the session, or its audit log"},
		{Name: "dry-run", Value: option.Switch(&c.r.DryRun), Help: "show the difference and change nothing"},
		{Name: "yes", Value: option.Switch(&c.yes), Help: "do not ask"},
		{Name: "revoke", Value: option.Switch(&c.revoke), Help: "trust the project no longer"},
		{Name: "workdir", Arg: "DIR", Value: option.Text(&c.r.Workdir),
			Help: "the project that DIR is in, instead of this one"},
		command.JSON(&c.r.JSON),
	}
}

// scopeSwitch is a scope as an option of its own.
func (c *policyCall) scopeSwitch(name string) option.Option {
	return option.Option{Name: name, Help: "the same as --scope " + name,
		Value: option.Func(func(string) error { c.scope = name; return nil })}
}

// taking are the options that a verb has, by their names.
func (c *policyCall) taking(names string) []option.Option {
	names = " " + strings.Replace(names, "scope", "scope user project org", 1) + " "
	return slices.DeleteFunc(c.options(), func(o option.Option) bool { return !strings.Contains(names, " "+o.Name+" ") })
}

// Policy is sbx policy.
func (t Commands) Policy(explainer command.Explainer) command.Row {
	out := command.Row{Command: option.Command{Name: "policy", Args: "VERB ...", Help: "show, test and change the rules"}}
	for _, v := range policyVerbs() {
		out.Verbs = append(out.Verbs, command.Row{
			Command: option.Command{Name: "policy " + v.name, Aliases: v.aliases, Args: v.args, Help: v.help, Words: v.words},
			Begin: func([]string) ([]option.Option, func([]string) int) {
				c := &policyCall{scope: "user", now: time.Now(), explainer: explainer}
				return c.taking("workdir json " + v.takes), func(words []string) int { return t.policy(c, v.run, words) }
			},
		})
	}
	return out
}

func (t Commands) policy(c *policyCall, run func(Commands, *policyCall) int, words []string) int {
	c.words = words
	c.facts = host.Read(t.Env)
	c.src = request.Sources(t.Env, c.facts, c.r.ProjectRoot(c.facts))
	return run(t, c)
}

// usage is the error of a verb whose words are wrong.
func (c *policyCall) usage(text string) error {
	verb, _, _ := strings.Cut(text, " ")
	return option.Wrong("usage: sbx policy "+text, "sbx policy "+verb+" --help says more")
}

// ruleRow is a rule as `--json` and the tables show it.
type ruleRow struct {
	Scope    string   `json:"scope"`
	Kind     string   `json:"kind"`
	Pattern  string   `json:"pattern"`
	Access   string   `json:"access"`
	Decision string   `json:"decision"`
	Program  string   `json:"program,omitempty"`
	Label    string   `json:"label,omitempty"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	By       string   `json:"by,omitempty"`
	Added    string   `json:"added,omitempty"`
	Expires  string   `json:"expires,omitempty"`
	Final    bool     `json:"final,omitempty"`
	Ignored  string   `json:"ignored,omitempty"` // why it does not count
	Accepts  []string `json:"accepts,omitempty"`
	Decoy    bool     `json:"decoy,omitempty"`
}

func rowOf(r policy.Rule) ruleRow {
	row := ruleRow{Scope: r.Origin.Scope.String(), Kind: string(r.Kind), Pattern: r.Pattern, Access: string(r.Access),
		Decision: r.Decision.String(), Program: r.Program,
		Label: r.Label, Accepts: r.Accepts, Decoy: r.Decoy,
		File: r.Origin.File, Line: r.Origin.Line, Reason: r.Reason, By: r.By, Final: r.Final}
	if !r.Added.IsZero() {
		row.Added = r.Added.UTC().Format(time.RFC3339)
	}
	if !r.Expires.IsZero() {
		row.Expires = r.Expires.UTC().Format(time.RFC3339)
	}
	return row
}

func policyShow(t Commands, c *policyCall) int {
	if len(c.words) > 0 {
		return t.Fail(c.usage("show [--json]"))
	}
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	rows := []ruleRow{}
	for _, r := range s.Layers.Policy.Rules() {
		row := rowOf(r)
		lock, locked := r.Lock()
		switch {
		case locked:
			row.Ignored = lock.String() + " has made final what it would widen"
		case !r.Expires.IsZero() && !c.now.Before(r.Expires):
			row.Ignored = "expired"
		case r.Origin.Scope == policy.ScopeProject && !s.Layers.Trusted && r.Decision == policy.Allow:
			row.Ignored = "the project is not trusted"
		case r.Origin.Scope == policy.ScopeProject && r.Decision == policy.Reveal:
			row.Ignored = "no project shows a secret"
		case r.Origin.Scope == policy.ScopeProject && !s.Layers.Trusted && len(r.Accepts) > 0:
			row.Ignored = "what it accepts, because the project is not trusted"
		}
		rows = append(rows, row)
	}
	tools := toolsOf(s)
	if c.r.JSON {
		t.Print(command.Encode(struct {
			Project string    `json:"project"`
			Trusted bool      `json:"trusted"`
			Rules   []ruleRow `json:"rules"`
			Tools   []toolRow `json:"tools"`
		}{c.src.ProjectDir, s.Layers.Trusted, rows, tools}))
		return 0
	}
	if len(rows) == 0 {
		t.Say("no rules: the profile decides (" + s.Profile.Name + ", " + quoting.ASCII(s.Origin("sandbox.profile")) + ")\n")
	}
	for _, x := range rows {
		t.Say(x.text())
	}
	for _, x := range tools {
		t.Say(x.text())
	}
	return 0
}

func (x ruleRow) text() string {
	var notes []string
	if x.Final {
		notes = append(notes, "final")
	}
	if x.Program != "" {
		notes = append(notes, "for "+quoting.Quote(x.Program))
	}
	if x.Label != "" {
		notes = append(notes, "label "+x.Label)
	}
	if x.Decoy {
		notes = append(notes, "decoy")
	}
	if len(x.Accepts) > 0 {
		notes = append(notes, "accepts "+quoting.ASCII(strings.Join(x.Accepts, ", ")))
	}
	if x.Expires != "" {
		notes = append(notes, "until "+x.Expires)
	}
	if x.Ignored != "" {
		notes = append(notes, "ignored: "+x.Ignored)
	}
	if x.Reason != "" {
		notes = append(notes, quoting.Quote(x.Reason))
	}
	if x.By != "" {
		notes = append(notes, "by "+quoting.Quote(x.By))
	}
	where := x.Scope
	if x.File != "" {
		where = quoting.Quote(x.File)
		if x.Line > 0 {
			where += fmt.Sprintf(":%d", x.Line)
		}
	}
	text := fmt.Sprintf("%-5s %-7s %-40s %-8s %s", x.Decision, x.Access, quoting.Quote(x.Pattern), x.Scope, where)
	if len(notes) > 0 {
		text += "  # " + strings.Join(notes, ", ")
	}
	return text + "\n"
}

func policyCheck(t Commands, c *policyCall) int {
	problems := []string{}
	note := func(err error) {
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	notices := []string{}
	if len(c.words) == 0 {
		s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
		if note(err); err == nil {
			note(s.CheckProfiles())
		}
		for _, n := range s.Notices {
			notices = append(notices, n.String())
		}
	}
	for _, p := range c.words {
		data, err := ownfile.Named(p)
		if err == nil {
			abs, _ := filepath.Abs(p)
			err = policy.Check(data, abs, c.scopeOf(), c.src.Vars)
		}
		note(err)
	}
	if c.r.JSON {
		t.Print(command.Encode(struct {
			OK       bool     `json:"ok"`
			Problems []string `json:"problems"`
			Notices  []string `json:"notices"`
		}{len(problems) == 0, problems, notices}))
	} else {
		for _, p := range problems {
			t.Warn(p)
		}
		for _, n := range notices {
			t.Warn(n)
		}
		if len(problems) == 0 {
			t.Print("ok\n")
		}
	}
	if len(problems) > 0 {
		return 1
	}
	return 0
}

func (c *policyCall) scopeOf() policy.Scope {
	switch c.scope {
	case "org":
		return policy.ScopeOrg
	case "project":
		return policy.ScopeProject
	}
	return policy.ScopeUser
}

// target is the file that the scope's rules (policy.toml) or settings (config.toml) are in. make creates its folder.
func (c *policyCall) target(name string, create bool) (edit.Target, error) {
	g := edit.Target{Name: name, Scope: c.scopeOf(), UID: int(c.facts.UID)}
	switch g.Scope {
	case policy.ScopeOrg:
		g.Dir, g.UID = request.OrgDir, 0
		return g, nil // an administrator makes the folder
	case policy.ScopeProject:
		if c.src.ProjectDir == "" {
			return g, option.Wrong("there is no project here", "cd into one, or pass --workdir DIR")
		}
		g.Dir = c.src.ProjectDir + "/.sbx"
	default:
		if c.src.UserDir == "" {
			return g, option.Wrong("neither XDG_CONFIG_HOME nor HOME names a directory", "set one of them")
		}
		g.Dir = c.src.UserDir
	}
	if create {
		mode := os.FileMode(0o700)
		if g.Scope == policy.ScopeProject {
			mode = 0o755
		}
		if err := os.MkdirAll(g.Dir, mode); err != nil {
			return g, fmt.Errorf("creating %s: %w", quoting.Quote(g.Dir), err)
		}
	}
	return g, nil
}
