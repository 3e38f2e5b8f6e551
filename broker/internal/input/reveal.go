package input

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// revealed has single secret files shown: by the gate, which looks at each program that opens one, where it can; else
// by a mount, which every program inside has until the session ends.
func (x *carrier) revealed(list []policy.Rule) {
	reveals := x.s.Reveals(x.s.Layers.Policy)
	for _, r := range list {
		p, _ := r.Path().Literal()
		if r.Decision != policy.Reveal || !x.holds(r, p) {
			continue
		}
		what := "rule " + quoting.ASCII(r.String()) + " (" + r.Origin.String() + ")"
		switch why := x.unshowable(p); {
		case !reveals.May(p):
			x.miss(what, "the organisation lets no other secret be shown than fs.reveal lists ("+reveals.Final.String()+")")
		case why == missing:
		case why != "":
			x.miss(what, why)
		case x.gated(p):
			x.gate(p)
		case x.layered(p):
			x.miss(what, "it lies in a hidden directory of a tree that is shown through a layer: copy it to your home")
		case r.Program != "":
			x.miss(what, "nobody tells programs apart here: it takes dynamic mode with a served root, and a place in no tree "+
				"that is shown")
		default:
			if !r.Expires.IsZero() {
				x.miss(what, "what is mounted from the start stays until the session ends, also when the rule has ended before")
			}
			x.in.Grants = append(x.in.Grants, planner.Grant{Path: p, Mode: planner.Read, Optional: true, Explicit: true,
				Ruled: true, Reveal: true, Why: r.Origin.String()})
		}
	}
	for _, text := range x.s.FS.Reveal {
		p, _ := pathname.SplitOptional(text)
		switch why := x.unshowable(p); {
		case why == missing || x.static:
		case why == "" && x.gated(p):
			x.gate(p)
		case reveals.Rules[p]:
		default:
			if why == "" {
				why = "it is asked about only where the root is served, and in no tree that is shown: " +
					"sbx secret allow shows it without a question"
			}
			x.miss("fs.reveal "+quoting.Quote(text), why)
		}
	}
}

func (x *carrier) miss(what, why string) {
	x.in.Losses = append(x.in.Losses, planner.Loss{What: what, Why: why})
}

func (x *carrier) gate(p string) {
	if !slices.Contains(x.in.Reveals, p) {
		x.in.Reveals = append(x.in.Reveals, p)
	}
}

const missing = "it does not exist"

// unshowable says why a secret file cannot be shown whatever anybody says, "" if it can.
func (x *carrier) unshowable(p string) string {
	canon, _, st, err := host.Resolve(x.in.FS, p)
	switch {
	case host.NotExist(err):
		return missing
	case err != nil:
		return "it cannot be looked at"
	case canon != p:
		return "links lead to " + quoting.Quote(canon) + ": name that"
	case st.Type != host.File:
		return "it is no file: name one in it"
	case x.ofSbx(p):
		return "it is sbx's own, or lies in a place that the sandbox has of its own"
	case x.hiddenNow(p):
		return "an option of this run hides it"
	}
	return ""
}

// ofSbx says whether a path is in one of sbx's own folders, where rules and credentials are, or in a place of the
// sandbox's.
func (x *carrier) ofSbx(p string) bool {
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if ownPlace(dir) || dir == request.OrgDir {
			return true
		}
	}
	own := planner.Input{Facts: x.in.Facts, FS: x.in.FS}
	secretsOfSbx(x.s.Vars, &own)
	return slices.ContainsFunc(own.Hides, func(h planner.Hide) bool { return host.Within(p, path.Clean(h.Path)) })
}

// layered says whether a file lies in a hidden directory outside of the home: the tree around that may be shown through
// a layer, which has no place to mount it on.
func (x *carrier) layered(p string) bool {
	home := x.in.Facts.Home
	return (home == "" || !host.Within(p, home)) && slices.ContainsFunc(x.in.Hides, func(h planner.Hide) bool {
		return h.Path != p && host.Within(p, path.Clean(h.Path))
	})
}

// gated says whether the gate is asked about a path: the root is served, and nothing around it is shown.
func (x *carrier) gated(p string) bool {
	return !x.static && x.in.Gate && !slices.ContainsFunc(x.in.Grants, func(g planner.Grant) bool {
		return !g.Reveal && host.Within(p, path.Clean(g.Path))
	})
}
