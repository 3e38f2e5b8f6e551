package explain

import (
	"cmp"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/broker/plan"
)

// named says what the name of a file in a tree that a run from here would show, or ask about, tells: that it is a
// secret's, or why it is none.
func (x *Explainer) named(p string) secrets.Finding {
	if slices.ContainsFunc(x.Input.Grants, func(g planner.Grant) bool {
		return g.Path == p && (g.Explicit ||
			g.Why != "") && !x.isDir(p)
	}) {
		return secrets.Finding{} // who grants a single file has named it
	}
	top := x.Input.Shown()(p)
	if top == "" && !x.Static {
		top = request.NewNameGate(x.Input).Top(p)
	}
	return request.SecretIn(x.Input, top, p)
}

// secretShown answers for a secret file of which somebody has said that it may be shown.
func (x *Explainer) secretShown(p string, a policy.Access, row *Answer) bool {
	if !x.Env.Reveals.Concerns(p) {
		return false
	}
	v := decide.Decide(decide.Ask{Path: p, Op: string(a)}, x.Env)
	if r, ok := x.Env.Policy(policy.Query{Kind: policy.KindPath, Path: p, Access: a, Now: x.Env.Now}); ok {
		row.rule(r)
	}
	row.Decision, row.Layer, row.Reason = v.Decision.String(), "secret", v.Reason
	here := !x.Static || slices.ContainsFunc(x.Input.Grants, func(g planner.Grant) bool {
		return g.Reveal && g.Path == p
	})
	switch {
	case v.Decision == decide.Deny:
		row.Decision = "absent"
	case !here:
		row.Decision = "absent"
		row.Reason += "; this run cannot show it, and says why"
	case v.Decision == decide.AskHuman:
		row.Scope, row.Rule = "configuration", "fs.reveal"
		row.Reason += "; fs.reveal lets it be asked about"
	}
	if row.Decision != "allow" && a == policy.Read {
		row.Change = "sbx secret allow " + quoting.Shell(p)
	}
	return true
}

func (x *Explainer) isDir(p string) bool {
	st, err := x.Input.FS.Lstat(p)
	return err == nil && st.Type == host.Dir
}

// secretName answers for a name that is hidden.
func (x *Explainer) secretName(p string, row *Answer) bool {
	linked := slices.ContainsFunc(x.Losses, func(l planner.Loss) bool {
		return l.Why == planner.LinkedWhy && l.What == plan.Bytes(p).Quote()
	})
	f := x.named(p)
	if !f.Hidden && !linked || x.listed(p, p) != nil { // said better by the list that has it
		return false
	}
	row.Decision, row.Layer, row.Rule, row.Reason, row.Scope = "absent", "secret", f.Rule, f.Reason(), "built-in"
	if row.Once = "sbx run --ro " + quoting.Place(p); !f.Hidden {
		row.Once, row.Rule, row.Reason = "", "names of secret files", "it is another name (hard link) of a secret"
	}
	row.Change = "none that lasts: copy what the program needs to a name that is no secret's"
	return true
}

// keptByGate answers for what no answer gives: a secret by another name, and settings with a password in them to write.
func (x *Explainer) keptByGate(p string, a policy.Access, row *Answer) bool {
	names := request.NewNameGate(x.Input)
	st, err := x.Input.FS.Lstat(p)
	row.Layer, row.Scope, row.Rule = "secret", "built-in", "names of secret files"
	switch {
	case err != nil || st.Type != host.File:
	case names.Other(p):
		row.Decision, row.Reason = "absent", "it is another name (hard link) of a secret"
		row.Change = "none that lasts: copy what the program needs to a name that is no secret's"
		return true
	case a == policy.Write && names.Token(p):
		row.Decision, row.Reason = "deny", "a password or token is in it: it is read without that, and not written"
		row.Change = "git outside takes it out, and a credential helper keeps it"
		return true
	}
	return false
}

// givenPlace is a place of sbx's own that a run is given on purpose, which the host has elsewhere.
type givenPlace struct {
	kind, at, access, reason string
	what, key, option        string   // who gives it: an entry of a list in [network], or an option
	in                       []string // that list
}

// given answers for such places, and for what lies in them.
func (x *Explainer) given(p, kind string, e *Explanation) bool {
	for _, g := range [...]givenPlace{
		{"path", plan.LoginPlace, "write",
			"the folder of a login, in which a program that signs in inside keeps placeholders (docs/credentials.md)",
			"login", "with", "--with", x.Settings.Network.With},
		{"socket", plan.EndpointPlace, "connect",
			"the socket of an endpoint, by which programs inside reach an API (docs/credentials.md)",
			"endpoint", "endpoints", "--endpoint", x.Settings.Network.Endpoints},
	} {
		name, ok := strings.CutPrefix(p+"/", g.at)
		if !ok || g.kind == "path" && kind == "socket" {
			continue
		}
		name, _, _ = strings.Cut(name, "/")
		e.Kind, e.Answers = g.kind, append(e.Answers, x.givenAnswer(&g, cmp.Or(name, "NAME")))
		return true
	}
	return false
}

func (x *Explainer) givenAnswer(g *givenPlace, name string) Answer {
	row := Answer{Access: g.access, Decision: "allow", Layer: "sandbox", Rule: g.at + name, Reason: g.reason}
	if !slices.Contains(g.in, name) {
		row.Decision, row.Reason = "absent", row.Reason+"; only runs with that "+g.what+" have it"
		row.Change = g.key + " = [\"" + name + "\"] in [network] of " + x.Sources.UserDir + "/config.toml"
		row.Once = "sbx run " + g.option + " " + quoting.Shell(name)
	}
	return row
}
