package explain

import (
	"path"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/learn"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/broker/plan"
)

// Answer says what would happen to one access, which layer says so, and the smallest change.
type Answer struct {
	Access   string `json:"access"`
	Decision string `json:"decision"` // allow, ask, deny, or absent: the name does not exist inside
	Layer    string `json:"layer"`    // secret, hidden, socket, guard, rule, mount, sandbox, network, probe or default
	Reason   string `json:"reason"`
	Rule     string `json:"rule,omitempty"`
	Scope    string `json:"scope,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	By       string `json:"by,omitempty"`   // who added the rule, and when
	Change   string `json:"change"`         // the smallest lasting change that would allow it; empty when it is allowed
	Once     string `json:"once,omitempty"` // the same for one run
}

// Explainer has what a run from here would have.
type Explainer struct {
	Settings request.Settings
	Input    *planner.Input
	Plan     *plan.Plan
	Env      decide.Env
	Sources  policy.Sources
	Static   bool
	Backend  string         // what holds the run; "": native
	Losses   []planner.Loss // of such a run
	Note     string         // why a run from here would be refused; the rest then is about one from elsewhere

	concealed func(p string) bool // see planner.Concealed
}

// Refresh computes everything that a decision in such a run depends on, with the rules that s has.
func (x *Explainer) Refresh(now time.Time) error {
	mode, err := prompt.ParseMode(x.Settings.Sandbox.Prompt)
	if err != nil {
		return err
	}
	if x.concealed, err = planner.Concealed(*x.Input); err != nil {
		return err
	}
	store := x.Settings.Layers.Policy.With(policy.ScopeSession, request.SocketRules(x.Input)...)
	x.Env = decide.Env{Policy: store.Match, Restricts: store.Restricts, Hidden: x.Settings.Concealed(),
		Asks: x.Settings.Asks(), Now: now, Static: x.Static, Reveals: x.Settings.Reveals(store),
		Runs: func(_ int, exe, program string) bool { return exe == "" || exe == program },
		Acts: x.Input.Acts(x.Input.Outside), Files: request.WritableFiles(x.Input, x.Plan)}
	if a := x.Settings.Agent; a != nil {
		x.Env.Login = &decide.Login{Patterns: a.Login, Agent: a.Name}
		x.Env.Unread = x.Settings.Unread()
	}
	x.Env.NoPrompt, x.Env.Unasked = prompt.Unasked(mode, true, x.Settings.Sandbox.PromptCommand != "")
	switch reach, hosts := x.Settings.Reach(!x.Static); reach {
	case policy.AllHosts:
		x.Env.AllHosts = true
	case policy.SomeHosts:
		for _, h := range hosts {
			if p, err := peer.ParsePattern(h); err == nil {
				x.Env.Hosts = append(x.Env.Hosts, p)
			}
		}
	}
	return nil
}

// path explains one access to a path as it was typed.
func (x *Explainer) path(p string, a policy.Access) (row Answer) {
	canon, links, st, err := host.Resolve(x.Input.FS, p)
	if canon == "" || err != nil && !host.NotExist(err) {
		canon = path.Clean(p)
	}
	defer func() { x.labelled(canon, &row) }()
	if st.Type == host.Socket || a == policy.Connect {
		return x.socket(path.Clean(p), canon)
	}
	row = Answer{Access: string(a)}
	if x.secretShown(canon, a, &row) {
		return row
	}
	names := []string{path.Clean(p), canon}
	for _, name := range names {
		if x.served(name, a, &row) || x.copied(name, a, &row) || x.secretName(name, &row) || x.guarded(name, a, &row) {
			return row
		}
	}
	for _, l := range links {
		names = append(names, l.Path)
	}
	for _, name := range names {
		if x.hidden(name, p, a, &row) {
			return row
		}
	}
	defer func() { // a name that looks like a secret's and is none
		if f := x.named(canon); f.Because != secrets.NoName && !f.Hidden {
			row.Reason = strings.TrimPrefix(row.Reason+"; "+f.Reason(), "; ")
		}
	}()
	if x.ruled(canon, a, &row) || !x.shows(p) && x.hiddenHere(canon, a, &row, false) || x.mounted(canon, a, &row) {
		return row
	}
	if !x.Static && x.keptByGate(canon, a, &row) {
		return row
	}
	q := decide.Ask{Path: canon, Op: string(a)}
	if host.NotExist(err) && !x.Static { // it would be made
		q.Of = request.Originals(x.Input, canon, false)
	}
	x.unsettled(q, &row)
	if host.NotExist(err) && a == policy.Write {
		x.beside(canon, &row)
	}
	return row
}

// copied is about configurations of tools, of which a copy is shown.
func (x *Explainer) copied(p string, a policy.Access, row *Answer) bool {
	if !slices.ContainsFunc(x.Input.Copies, func(c planner.Copy) bool { return c.Linked && c.Path == p }) {
		return false
	}
	row.Decision, row.Layer, row.Scope, row.Rule = "allow", "secret", "built-in", p
	row.Reason = "a copy is shown, without what may hold a credential (docs/caches.md)"
	if a == policy.Write || a == policy.Exec {
		row.Decision, row.Reason = "deny", row.Reason+"; it is read-only"
		row.Change = "none that lasts: change it outside of the sandbox"
	}
	return true
}

// denied mends the change that would open what is hidden: a rule that refuses stands in its way.
func (x *Explainer) denied(r policy.Rule, ruled bool, p string, a policy.Access, row *Answer) {
	if !ruled || r.Decision != policy.Deny {
		return
	}
	row.Reason += "; " + r.String() + " (" + r.Origin.String() + ") refuses it as well"
	if row.Change = x.overrule(r, p, a); r.Origin.Scope == policy.ScopeOrg {
		row.Once = ""
	}
}

// secretChange is what can be done about a secret: take it off a list of one's own, or have it used and not read.
func secretChange(h *policy.Hiding, p string, dir bool) (change, once string) {
	switch {
	case h.Origin.File != "":
		return "take " + quoting.Shell(h.Pattern) + " out of fs.secrets in " + h.Origin.String(), ""
	case strings.HasPrefix(h.Pattern, "~/.ssh"):
		once = UseOfSSH
	case strings.HasPrefix(h.Pattern, "~/.gnupg"):
		once = "sbx run --gpg-agent lets it use the keys of your agent without reading them"
	}
	const copied = "copy what the program needs to a place of its own"
	if dir {
		return "nothing shows a secret directory: " + copied, once
	}
	return "nothing shows a secret but sbx secret allow " + quoting.Shell(p) + ": or " + copied, once
}

// guarded is about the names that sbx keeps from changing, or hides, in writable projects.
func (x *Explainer) guarded(p string, a policy.Access, row *Answer) bool {
	m := request.GuardedTop(x.Plan, p)
	if m == nil || m.Target == p || x.layerAt(p) != nil {
		return false
	}
	judge, err := request.GuardJudge(x.Input, m)
	if err != nil {
		return false
	}
	v, name := x.judged(judge, m.Target, strings.TrimPrefix(p, m.Target+"/"))
	switch {
	case v.Action == guard.Free:
		return false
	case v.Action == guard.Hide:
		if x.listed(p, p) != nil {
			return false // said better by the layer that asked for it
		}
		row.Decision, row.Layer, row.Rule = "absent", "secret", "names of secrets in a project"
		row.Reason = "environment files and keys do not exist inside a project"
		row.Scope, row.Once = "built-in", "sbx run --rw "+quoting.Place(p)
		row.Change = "none that lasts: copy what the program needs to a name that is no secret's"
		return true
	case a != policy.Write, v.Action == guard.Index && x.Input.Placed: // nobody looks at contents there
		return false
	}
	row.Decision, row.Layer, row.Scope, row.Rule, row.Reason = "deny", "guard", "built-in", name, v.Why
	switch v.Action {
	case guard.Check:
		row.Reason += " (docs/git.md)"
	case guard.Index:
		row.Reason += "; git may write it, except for a new one that could act outside"
	case guard.Text:
		row.Reason += "; one that git makes for a submodule or a worktree may be written"
	}
	row.Once, row.Change = "sbx run --rw "+quoting.Place(p), "none that lasts: change it outside of the sandbox"
	return true
}

// judged is the verdict on rel, and the guarded name that it is at or below.
func (x *Explainer) judged(j *guard.Judge, top, rel string) (v guard.Verdict, name string) {
	repository := func(dir string) bool {
		_, err := x.Input.FS.Lstat(path.Join(top, dir, "HEAD"))
		return err == nil
	}
	for i := 0; i <= len(rel); i++ {
		if i == len(rel) || rel[i] == '/' {
			if v = j.At(rel[:i], repository); v.Action != guard.Free && v.Action != guard.Text &&
				v.Action != guard.Keep {
				return v, rel[:i]
			}
		}
	}
	return v, rel
}

// ruled is about what a rule of a policy file settles.
func (x *Explainer) ruled(p string, a policy.Access, row *Answer) bool {
	rule, ok := x.Env.Policy(policy.Query{Kind: policy.KindPath, Path: p, Access: a, Now: x.Env.Now})
	if !ok || a == policy.Write && rule.Decision == policy.Allow && rule.Passes(p, x.Env.Acts) != "" {
		return false
	}
	row.rule(rule)
	row.Decision = rule.Decision.String()
	if rule.Decision == policy.Ask && x.Static {
		row.Decision, row.Reason = "deny", row.Reason+"; static mode asks nobody"
	}
	switch {
	case row.Decision != "allow":
		row.Change = x.overrule(rule, p, a)
	case a == policy.Write && x.layerAt(p) != nil:
		*row = Answer{Access: row.Access}
		return x.mounted(p, a, row)
	}
	return true
}

// overrule is the smallest change that ends a rule's refusal.
func (x *Explainer) overrule(r policy.Rule, what string, a policy.Access) string {
	switch r.Origin.Scope {
	case policy.ScopeOrg:
		return "only the administrator can: " + r.Origin.String()
	case policy.ScopeProject, policy.ScopeUser:
		cmd := "sbx policy remove " + quoting.Shell(r.Pattern)
		if r.Kind == policy.KindHost {
			cmd += kindOf(r.Pattern)
		}
		if r.Origin.Scope == policy.ScopeProject {
			return cmd + " --scope project"
		}
		return cmd
	}
	return x.addRule(what, a)
}

// mounted is about what the plan shows.
func (x *Explainer) mounted(p string, a policy.Access, row *Answer) bool {
	m := x.mountAt(p)
	if m == nil {
		return false
	}
	if a == policy.Write && x.onTheWay(m) {
		x.unsettled(decide.Ask{Path: p, Op: string(a)}, row)
		if row.Decision == "absent" {
			row.Decision, row.Reason = "deny", "on the way to what is granted, read-only; "+row.Reason
		}
		return true
	}
	row.Layer, row.Scope, row.Decision = "mount", strings.TrimSpace(string(m.Kind)+" "+string(m.Access)), "allow"
	row.Rule = m.Target
	written := "thrown away at the end"
	for _, g := range x.Input.Grants {
		if canon, _, _, _ := host.Resolve(x.Input.FS, g.Path); canon == m.Target {
			row.Reason = m.Why
			row.File, row.Line = splitOrigin(g.Why)
			if g.Keeps(strings.TrimPrefix(p, canon+"/")) {
				written = "kept for the next run of this project, in a layer of sbx's own"
			}
		}
	}
	if row.Reason = m.Why; row.Reason == "" {
		row.Layer, row.Reason = "sandbox", "the sandbox's own"
	}
	_, err := x.Input.FS.Lstat(p)
	switch {
	case m.Kind == plan.Tmpfs && m.Why == "" && err == nil && p != m.Target:
		row.Decision, row.Reason = "absent", "the sandbox has a "+m.Target+
			" of its own, empty at the start, and asks about nothing in it"
		if row.Change, row.Once = x.addRule(p, a), "sbx run --ro "+quoting.Place(p); a == policy.Write {
			row.Once = "sbx run --rw " + quoting.Place(p)
		}
	case m.Why == planner.MaskedWhy:
		if row.Reason = "shown without the passwords and tokens in it"; a == policy.Write {
			row.Decision, row.Reason = "deny", row.Reason+", read-only"
		}
	case m.Access == plan.ReadWrite && (m.Kind == plan.Overlay || m.Why == planner.CacheWhy && m.Source != m.Target):
		row.Reason += "; what is written is " + written
	case a == policy.Write && m.Access == plan.ReadOnly:
		row.Decision, row.Reason = "deny", row.Reason+", read-only"
		row.Change, row.Once = x.addRule(p, a), "sbx run --rw "+quoting.Place(p)
	case a == policy.Write && x.alone(p):
		row.Reason += "; in place: to put another file there, as many programs save, takes " +
			request.ToReplace(x.Input, p)
	case a == policy.Exec && m.NoExec:
		row.Decision, row.Reason = "deny", row.Reason+", nothing in it can be executed"
	}
	return true
}

// onTheWay says whether a mount is a directory of the read-only skeleton, on the way to what is granted.
func (x *Explainer) onTheWay(m *plan.Mount) bool {
	return m.Kind == plan.Dir && !slices.ContainsFunc(x.Plan.Mounts, func(o plan.Mount) bool {
		return o.Kind == plan.Tmpfs && o.Target != "/" && o.Why != "skeleton" && host.Within(m.Target, o.Target)
	})
}

// splitOrigin takes FILE:LINE apart; other words have neither.
func splitOrigin(s string) (string, int) {
	file, line, ok := strings.Cut(s, ":")
	if !ok || !strings.HasPrefix(file, "/") {
		return "", 0
	}
	n := 0
	for _, c := range line {
		if c < '0' || c > '9' {
			return "", 0
		}
		n = n*10 + int(c-'0')
	}
	return file, n
}

// unsettled is what no layer grants: the built-in silent answers, or the question.
func (x *Explainer) unsettled(q decide.Ask, row *Answer) {
	v := decide.Decide(q, x.Env)
	row.Decision, row.Layer, row.Reason, row.Rule, row.Scope = v.Decision.String(), "default", v.Reason, v.Rule, "default"
	if v.Silent {
		row.Decision, row.Layer, row.Scope = "absent", "probe", v.Origin
	} else if v.Decision == decide.Deny && q.Kind != policy.KindHost && q.Kind != policy.KindSocket {
		row.Decision = "absent"
	}
	if v.Decision == decide.Allow {
		return
	}
	row.Change = x.addRule(q.Path, policy.Access(q.Op))
	row.Once = "sbx run --ro " + quoting.Place(q.Path)
	if q.Op == "write" {
		row.Once = "sbx run --rw " + quoting.Place(q.Path)
	}
}

// addRule is the command that adds the narrowest rule.
func (x *Explainer) addRule(p string, a policy.Access) string {
	pattern := policy.Vars{Home: x.Settings.Vars.Home}.Short(pathname.Escape(p))
	if st, err := x.Input.FS.Lstat(p); err == nil && st.Type == host.Dir {
		pattern = strings.TrimSuffix(pattern, "/") + "/**"
	} else if dir, whole := learn.ComesBack(p, x.Settings.Vars.Home, 0, 0); err != nil && !whole &&
		!learn.Wide(dir, x.Settings.Vars.Home) { // a name that was made for that once
		pattern = policy.Vars{Home: x.Settings.Vars.Home}.Short(pathname.Escape(dir)) + "/**"
	}
	cmd := "sbx policy add allow " + quoting.Shell(pattern)
	if a != policy.Read && a != "" && a != policy.Connect {
		cmd += " --access " + string(a)
	}
	return cmd
}

func (row *Answer) from(o policy.Origin) {
	row.Scope, row.File, row.Line = o.Scope.String(), o.File, o.Line
	if o.File == "" && o.Scope == policy.ScopeDefault {
		row.Scope = "built-in"
	}
}

func (row *Answer) rule(r policy.Rule) {
	row.from(r.Origin)
	row.Layer, row.Rule, row.Reason = "rule", r.String(), r.Reason
	if row.Reason == "" {
		row.Reason = "a rule of the " + r.Origin.Scope.String() + "'s policy"
	}
	if row.By = r.By; !r.Added.IsZero() {
		row.By = strings.TrimSpace(row.By + " at " + r.Added.UTC().Format(time.RFC3339))
	}
}

const UseOfSSH = "sbx run --ssh-agent lets it use the keys of your agent without reading them"
