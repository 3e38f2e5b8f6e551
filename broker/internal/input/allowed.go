package input

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// allow grants the places that are not shown well enough already.
func (x *carrier) allow(r policy.Rule, paths []string, tree bool) {
	mode := planner.Read
	if r.Access == policy.Write {
		mode = planner.Write
	}
	for _, p := range paths {
		if !x.holds(r, p) || ownPlace(p) || !x.static && x.s.Agent.Shows(p) {
			continue // a login is not mounted: each program that opens it is looked at
		}
		if !x.static && len(x.s.Layers.Policy.LabelsOf(p, false, x.now)) > 0 {
			continue // a labelled place is not mounted either before somebody reads it
		}
		if x.unread && r.Label != "" {
			continue // its caller has not read it
		}
		x.in.Facts.Foreign.Name(p)
		canon, links, st, err := host.Resolve(x.in.FS, p)
		if err != nil || canon == "" || ownPlace(canon) {
			continue // a rule about what does not exist is no mistake
		}
		if canon != p && x.locked(r, canon) {
			continue
		}
		if st.Type == host.Dir && !tree {
			if x.static && x.modeAt(canon) == planner.None {
				x.loss(r, "mounts show a directory with all that is in it, or not at all; "+
					quoting.Quote(strings.TrimSuffix(r.Pattern, "/*")+"/**")+" says that")
			}
			continue
		}
		if madeByPrograms(x.in, links) {
			x.loss(r, ledByPrograms)
			continue
		}
		if mode == planner.Write && x.unwritable(r, p, canon) {
			continue
		}
		if tree && !x.static && x.s.Agent.IsApart(p) {
			x.entries(r, canon, mode)
			continue
		}
		if x.secret(r, p) || x.secret(r, canon) || x.hiddenNow(p) || x.hiddenNow(canon) {
			continue
		}
		named := names(x.hidden, r, p)
		// What a project hides that is not trusted has a rule give nothing more.
		if !named && enough(x.in, mode, canon) || !names(x.before, r, p) && enough(x.without, mode, canon) {
			continue
		}
		if !r.Expires.IsZero() {
			if !x.static && !named && x.modeAt(canon) == planner.None {
				continue // the gate gives it without a question, and takes it back when the rule ends
			}
			x.loss(r, "what is mounted from the start stays until the session ends, also when the rule has ended before")
		}
		if named {
			x.unhide(p, canon)
		}
		x.in.Grants = append(x.in.Grants, planner.Grant{Path: p, Mode: mode, Optional: true, Ruled: true,
			Why: r.Origin.String()})
	}
}

// locked says whether a rule would, where its path leads, widen what the organisation has made final, and says so.
func (x *carrier) locked(r policy.Rule, canon string) bool {
	at, err := r.At(canon)
	key, lock := x.s.Widened(at)
	if err == nil && key != "" {
		x.loss(r, "it leads to "+quoting.Quote(canon)+", and "+lock.String()+" has made "+key+" final")
	}
	return err != nil || key != ""
}

// unwritable says whether a rule does not let a place be written that it is about, and says so.
func (x *carrier) unwritable(r policy.Rule, p, canon string) bool {
	if why := unsuitable(canon, x.in.Facts.Home); why != "" {
		x.loss(r, "it is "+why)
		return true
	}
	// that of a tree is its rule's own word, so most starts do not look at the home for it
	why := r.Passes(p, func(name string) string {
		if name == p {
			name = canon
		}
		return x.acts(name)
	})
	if why != "" {
		x.loss(r, quoting.Quote(p)+" stays as it is: it acts outside of the sandbox, and a rule that names it lets it be "+
			"changed: "+why)
	}
	return why != ""
}

// unhide takes out what hides a place by settings. What is hidden around it stays so.
func (x *carrier) unhide(names ...string) {
	settings := slices.DeleteFunc(slices.Clone(x.in.Hides[:x.base]), func(h planner.Hide) bool {
		return !h.Secret && slices.Contains(names, path.Clean(h.Path))
	})
	x.in.Hides = append(settings, x.in.Hides[x.base:]...)
	x.base = len(settings)
}

// secret says whether p is one, which mounts never show.
func (x *carrier) secret(r policy.Rule, p string) bool {
	for _, h := range x.in.Hides {
		if h.Secret && host.Within(p, path.Clean(h.Path)) {
			x.loss(r, "it is a secret ("+h.Why+"), and no rule shows one")
			return true
		}
	}
	f := request.SecretIn(x.in, x.in.Shown()(p), p)
	if !f.Hidden && x.without != x.in {
		f = request.SecretIn(x.in, x.without.Shown()(p), p)
	}
	if f.Hidden {
		x.loss(r, "it is a secret ("+f.Reason()+"), and no rule shows one")
	}
	return f.Hidden
}

// hiddenNow says whether an option of this run, the latest word, hides p.
func (x *carrier) hiddenNow(p string) bool {
	return slices.ContainsFunc(x.in.Hides, func(h planner.Hide) bool {
		return byOption(h) && host.Within(p, path.Clean(h.Path))
	})
}

func byOption(h planner.Hide) bool { return strings.HasPrefix(h.Why, "--") }

// names says whether a rule names what is hidden.
func names(hidden []policy.Hiding, r policy.Rule, p string) bool {
	h := policy.HiddenBy(hidden, policy.KindPath, p)
	return h != nil && h.Explicit(r)
}

// enough says whether p is shown well enough already.
func enough(in *planner.Input, mode planner.Mode, p string) bool {
	have := modeAt(in, p)
	return have == planner.Write || have == planner.Scratch || mode == planner.Read && have != planner.None
}

// modeAt is what the grants so far give at p.
func (x *carrier) modeAt(p string) planner.Mode { return modeAt(x.in, p) }

func modeAt(in *planner.Input, p string) planner.Mode {
	deepest := planner.Grant{}
	for _, g := range in.Grants {
		g.Path = host.LeadsTo(in.FS, g.Path)
		n := len(g.Path) - len(deepest.Path)
		if host.Within(p, g.Path) && (n > 0 || n == 0 && g.Stronger(deepest)) {
			deepest = g
		}
	}
	for _, h := range in.Hides {
		if host.Within(p, path.Clean(h.Path)) && len(h.Path) > len(deepest.Path) {
			return planner.None
		}
	}
	return deepest.Mode
}
