package explain

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// served is about file systems of which nobody knows what they hold.
func (x *Explainer) served(p string, a policy.Access, row *Answer) bool {
	at := x.Input.Facts.Foreign.Closed(p)
	if at == "" || !slices.ContainsFunc(x.Losses, func(l planner.Loss) bool {
		return l.Why == planner.ServedWhy && l.What == plan.Bytes(at).Quote()
	}) {
		return false
	}
	row.Decision, row.Layer, row.Scope, row.Rule = "absent", "hidden", "built-in", at
	row.Reason = planner.ServedWhy
	row.Change, row.Once = x.addRule(at, a), "sbx run --ro "+quoting.Place(at)
	if a == policy.Write {
		row.Once = "sbx run --rw " + quoting.Place(at)
	}
	return true
}

// hidden finds what makes the name of something not exist, p is that or leads through it: an option of this run, unless
// it is a secret, or an entry of a list. A rule that names the thing itself opens it.
func (x *Explainer) hidden(name, p string, a policy.Access, row *Answer) bool {
	h := x.listed(name, p)
	if (h == nil || !h.Sealed()) && !x.shows(p) && x.hiddenHere(name, a, row, true) {
		return true
	}
	if h == nil {
		return false
	}
	row.Decision, row.Layer, row.Reason, row.Rule = "absent", "secret", h.Reason, h.Pattern
	row.from(h.Origin)
	if h.Sealed() {
		row.Change, row.Once = secretChange(h, name, x.isDir(name))
		return true
	}
	rule, ok := x.Env.Policy(policy.Query{Kind: policy.KindPath, Path: name, Access: a, Now: x.Env.Now})
	if ok && h.Explicit(rule) {
		return false
	}
	if row.Layer = "hidden"; h.Origin.File != "" {
		row.Change = "take " + quoting.Shell(h.Pattern) + " out of fs.hidden in " + h.Origin.String()
		return true
	}
	row.Change, row.Once = x.addRule(name, a), "sbx run --ro "+quoting.Place(name)
	x.denied(rule, ok, name, a, row)
	return true
}

// listed is the entry of a list that hides name from who uses p, which is that or leads through it; nil for none.
func (x *Explainer) listed(name, p string) *policy.Hiding {
	h := policy.HiddenBy(x.Env.Hidden, policy.KindPath, name)
	if h != nil && x.shows(p) && !x.later(h, name) {
		return nil
	}
	return h
}

// shows says whether the plan has what p leads to, and lets it be reached by that name. A place can be granted by its
// name below a hidden one, and not every pattern of a list can be hidden.
func (x *Explainer) shows(p string) bool {
	canon, links, _, _ := host.Resolve(x.Input.FS, p)
	if canon == "" {
		canon = path.Clean(p)
	}
	hidden := slices.ContainsFunc(links, func(l host.LinkAt) bool { return x.concealed(l.Path) })
	return !hidden && !x.concealed(canon) && x.mountAt(canon) != nil
}

// later says whether an entry would hide name in a run that begins when something has it: a wildcard finds what is
// there then.
func (x *Explainer) later(h *policy.Hiding, name string) bool {
	pattern := strings.TrimSuffix(h.Rule.String(), "/**")
	if _, ok := request.ExpandHide(x.Input.FS, pattern, false, ""); !ok || !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	parts := strings.SplitAfter(name, "/")
	found := strings.Join(parts[:min(len(parts), strings.Count(pattern, "/")+1)], "")
	_, err := x.Input.FS.Lstat(path.Clean(found))
	return err != nil
}

// hiddenHere is about what this run hides beyond the lists: by options, or else sockets, secrets of the account's own
// home and fs.ask where nobody asks.
func (x *Explainer) hiddenHere(p string, a policy.Access, row *Answer, byOption bool) bool {
	for _, o := range x.Input.Hides {
		if !host.Within(p, path.Clean(o.Path)) || strings.HasPrefix(o.Why, "--") != byOption {
			continue
		}
		row.Decision, row.Layer, row.Reason, row.Rule, row.Scope = "absent", "hidden", o.Why, o.Path, "built-in"
		if o.Secret {
			row.Layer = "secret"
		}
		if strings.HasPrefix(o.Why, "--") {
			row.Scope, row.Change = "command line", "leave "+o.Why+" "+quoting.Shell(o.Path)+" out"
		} else {
			row.Change = x.addRule(p, a)
			if row.File, row.Line = splitOrigin(o.Why); row.File != "" {
				row.Scope, row.Reason = "configuration", "asked about, and nobody is asked here"
			}
		}
		return true
	}
	return false
}
