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
	top := x.Input.ShownBy(p)
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
	f := x.named(p)
	if !f.Hidden || policy.HiddenBy(x.Env.Hidden, policy.KindPath, p) != nil { // said better by the list that has it
		return false
	}
	row.Decision, row.Layer, row.Rule, row.Reason, row.Scope = "absent", "secret", f.Rule, f.Reason(), "built-in"
	row.Once = "sbx run --ro " + quoting.Shell(p)
	row.Change = "none that lasts: copy what the program needs to a name that is no secret's"
	return true
}

// given answers for places of sbx's own that a run is given on purpose.
func (x *Explainer) given(p, kind string, e *Explanation) bool {
	if name, ok := strings.CutPrefix(p+"/", plan.LoginPlace); ok && kind != "socket" {
		e.Kind, e.Answers = "path", append(e.Answers, x.loginFolder(name))
		return true
	}
	name, ok := strings.CutPrefix(p+"/", plan.EndpointPlace)
	if ok {
		e.Kind, e.Answers = "socket", append(e.Answers, x.endpointSocket(name))
	}
	return ok
}

// loginFolder answers for what lies where the folders of logins are, which the host has elsewhere; name begins with
// that of one.
func (x *Explainer) loginFolder(name string) Answer {
	name, _, _ = strings.Cut(name, "/")
	name = cmp.Or(name, "NAME")
	row := Answer{Access: "write", Decision: "allow", Layer: "sandbox", Rule: plan.LoginPlace + name,
		Reason: "the folder of a login, in which a program that signs in inside keeps placeholders (docs/credentials.md)"}
	if !slices.Contains(x.Settings.Network.With, name) {
		row.Decision, row.Reason = "absent", row.Reason+"; only runs with that login have it"
		row.Change = "with = [\"" + name + "\"] in [network] of " + x.Sources.UserDir + "/config.toml"
		row.Once = "sbx run --with " + quoting.Shell(name)
	}
	return row
}

// endpointSocket is loginFolder for the sockets of endpoints.
func (x *Explainer) endpointSocket(name string) Answer {
	name, _, _ = strings.Cut(name, "/")
	name = cmp.Or(name, "NAME")
	row := Answer{Access: "connect", Decision: "allow", Layer: "sandbox", Rule: plan.EndpointPlace + name,
		Reason: "the socket of an endpoint, by which programs inside reach an API (docs/credentials.md)"}
	if !slices.Contains(x.Settings.Network.Endpoints, name) {
		row.Decision, row.Reason = "absent", row.Reason+"; only runs with that endpoint have it"
		row.Change = "endpoints = [\"" + name + "\"] in [network] of " + x.Sources.UserDir + "/config.toml"
		row.Once = "sbx run --endpoint " + quoting.Shell(name)
	}
	return row
}
