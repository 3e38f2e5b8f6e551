package input

import (
	"path"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// carrier carries the policy files' rules into the plan. What is allowed is mounted, so that nothing waits for it; what
// is denied does not exist, or cannot be written. A rule that mounts cannot express is a loss, except that a
// question (dynamic mode) can still carry it out.
type carrier struct {
	s       request.Settings
	in      *planner.Input
	without *planner.Input // in, without the file of a project that is not trusted
	now     time.Time
	static  bool
	unread  bool // labelled places are left out, see request.Unread
	hidden  []policy.Hiding
	before  []policy.Hiding // hidden, without that file
	base    int             // hides that are there already
	acts    func(string) string
}

// carryRules adds the rules in force to the plan's input; grants and hides are there already.
func (r *Run) carryRules(s request.Settings, in, without *planner.Input, static bool) error {
	list := byDepth(s.Layers.Policy.InForce())
	if len(list) == 0 && len(s.FS.Ask) == 0 && len(s.FS.Reveal) == 0 {
		return nil
	}
	x := carrier{s: s, in: in, without: without, now: time.Now(), static: static, unread: r.Unread(),
		hidden: s.Concealed(), base: len(in.Hides), acts: in.Acts(r.Env)}
	if x.before = x.hidden; without != in {
		s.Effective, _ = s.Without()
		x.before = s.Concealed()
	}
	if err := x.forbidden(); err != nil {
		return err
	}
	for _, pass := range [...]func(policy.Rule, policy.Decision) bool{isHide, isGrant} {
		for _, r := range byDepth(slices.Concat(list, s.Layers.Policy.Led())) {
			if r.Kind != policy.KindPath && r.Kind != policy.KindExec || r.Decision == policy.Reveal ||
				!r.Expires.IsZero() && !x.now.Before(r.Expires) {
				continue
			}
			if pass(r, r.Decision) {
				x.carry(r)
			}
		}
	}
	x.asks()
	x.revealed(list)
	x.decoys(list)
	if !static {
		x.leaveToQuestions()
	}
	return nil
}

// leaveToQuestions takes those hides out again that hide nothing: the place is not shown anyway, and the question's own
// refusal says more.
func (x *carrier) leaveToQuestions() {
	all := x.in.Hides
	for i := len(all) - 1; i >= x.base; i-- {
		x.in.Hides = slices.Delete(slices.Clone(all), i, i+1)
		if x.modeAt(host.LeadsTo(x.in.FS, all[i].Path)) == planner.None {
			all = x.in.Hides
		}
	}
	x.in.Hides = all
}

// What hides comes first; then what gives and what protects, from the outside in, so that the inner word stands.
func isHide(r policy.Rule, d policy.Decision) bool {
	return d != policy.Allow && r.Access != policy.Write && r.Access != policy.List
}

func isGrant(r policy.Rule, d policy.Decision) bool { return !isHide(r, d) }

func byDepth(list []policy.Rule) []policy.Rule {
	depth := func(r policy.Rule) int { return strings.Count(r.Path().String(), "/") }
	slices.SortStableFunc(list, func(a, b policy.Rule) int { return depth(a) - depth(b) })
	return list
}

// carry puts one rule into the plan's input.
func (x *carrier) carry(r policy.Rule) {
	if !x.static && x.s.Agent.Serves(r) {
		return // see entries
	}
	paths, tree, ok := x.places(r.Path())
	switch {
	case r.Access == policy.List:
		if x.static || r.Decision != policy.Allow {
			x.loss(r, "mounts cannot tell the names in a directory from what is in it")
		}
	case r.Access == policy.Exec || r.Kind == policy.KindExec:
		if r.Decision != policy.Allow {
			x.loss(r, "mounts cannot let a file be read and not be run")
		} else if len(paths) > 0 && x.static && x.modeAt(paths[0]) == planner.None {
			x.loss(r, "mounts cannot let a file be run and not be read")
		}
	case !ok && (x.static || r.Decision != policy.Allow):
		x.loss(r, "a wildcard may stand only in the last part of a path here")
	case r.Decision == policy.Allow:
		x.allow(r, x.undenied(r, paths), tree)
	case r.Access == policy.Write:
		x.protect(r, paths, tree)
	default:
		x.hide(r, paths)
	}
}

// forbidden refuses what an option, or the choice of the project, asks for and the organisation denies.
func (x *carrier) forbidden() error {
	for _, g := range x.in.Grants {
		if !g.Explicit && g.Path != x.in.Project || g.Mode == planner.Scratch {
			continue
		}
		a := policy.Read
		if g.Mode == planner.Write {
			a = policy.Write
		}
		for _, name := range x.names(g) {
			r, ok := x.s.Layers.Policy.Match(policy.Query{Kind: policy.KindPath, Path: name, Access: a, Now: x.now})
			if ok && r.Decision == policy.Deny && r.Origin.Scope == policy.ScopeOrg {
				return &planner.Refusal{What: quoting.Quote(g.Path) + " (" + g.Why + ") is refused by the organisation: " +
					quoting.ASCII(r.String()) + ", " + r.Origin.String(), Hint: "ask the administrator of this machine"}
			}
		}
	}
	return nil
}

func (x *carrier) loss(r policy.Rule, why string) {
	x.in.Losses = append(x.in.Losses, planner.Loss{What: "rule " + quoting.ASCII(r.String()) + " (" + r.Origin.String() +
		")", Why: why})
}

// places lists what a pattern is about: one path, a tree, or the names in a directory that are there now.
func (x *carrier) places(p pathname.Pattern) (paths []string, tree, ok bool) {
	if dir, ok := p.Tree(); ok {
		return []string{dir}, true, dir != "/"
	}
	if name, ok := p.Literal(); ok {
		return []string{name}, false, true
	}
	dir, ok := p.Names()
	if !ok {
		return nil, false, false
	}
	x.in.Facts.Foreign.Name(dir)
	entries, _ := x.in.FS.ReadDir(dir)
	for _, e := range entries {
		if name := path.Join(dir, e.Name); p.Match(name) {
			paths = append(paths, name)
		}
	}
	return paths, false, true
}

// holds says whether the rule is the one that decides about p: another scope or a narrower rule may be stronger.
func (x *carrier) holds(r policy.Rule, p string) bool {
	q := policy.Query{Kind: policy.KindPath, Path: p, Access: r.Access, Now: x.now}
	hit, ok := x.s.Layers.Policy.Match(q)
	if r.Decision == policy.Ask && (!ok || hit.Decision == policy.Deny) { // mounts may not be able to tell what denies
		hit, ok = x.s.Layers.Policy.OfOthers().Match(q)
	}
	return ok && hit.Decision == r.Decision
}

// later says whether a rule decides about p once others have ended that hold now.
func (x *carrier) later(r policy.Rule, p string) bool {
	q := policy.Query{Kind: policy.KindPath, Path: p, Access: r.Access, Now: x.now}
	for {
		hit, ok := x.s.Layers.Policy.Match(q)
		if !ok || hit.Decision == r.Decision || hit.Expires.IsZero() {
			return ok && hit.Decision == r.Decision && q.Now.After(x.now)
		}
		q.Now = hit.Expires
	}
}

// awaits says whether a place is left to the gate because a rule will decide about it: what is mounted stays.
func (x *carrier) awaits(r policy.Rule, p string) bool {
	if !x.later(r, p) {
		return false
	}
	if x.static {
		x.loss(r, "another rule about "+quoting.Quote(p)+" holds for a time, and what is mounted from the start stays "+
			"until the session ends, also when that has ended before")
	}
	return !x.static
}

// hide takes places away. An option of this run that names such a place is a later word than the user's or a
// project's, never than the organisation's.
func (x *carrier) hide(r policy.Rule, paths []string) {
	for _, p := range paths {
		now := x.holds(r, p)
		if !now && !x.awaits(r, p) {
			continue
		}
		if p == "/" || host.Within(x.in.Project, p) && (x.holds(r, x.in.Project) || x.later(r, x.in.Project)) {
			x.loss(r, "it would hide the project, which is what the program works on")
			if p == "/" || p == x.in.Project {
				continue
			}
		}
		if r.Origin.Scope != policy.ScopeOrg && x.named(p) {
			continue // shown by a later word
		}
		x.drop(r, p)
		x.in.Hides = append(x.in.Hides, planner.Hide{Path: p, Ask: !x.static && (r.Decision == policy.Ask || !now),
			Why: r.Origin.String()})
	}
}

// drop takes out what the profile or the files grant in a denied tree; what an option grants there stays, and the
// project.
func (x *carrier) drop(r policy.Rule, dir string) {
	kept := x.in.Grants[:0]
	for _, g := range x.in.Grants {
		p := path.Clean(g.Path)
		if g.Explicit || p == x.in.Project || p == x.in.GitDir || !slices.ContainsFunc(x.names(g), func(name string) bool {
			return host.Within(name, dir) && (x.holds(r, name) || x.later(r, name))
		}) {
			kept = append(kept, g)
		}
	}
	x.in.Grants = kept
}

// named says whether an option of this run grants p itself.
func (x *carrier) named(p string) bool {
	for _, g := range x.in.Grants {
		if g.Explicit && slices.Contains(x.names(g), p) {
			return true
		}
	}
	return false
}

// protect makes places read-only below what is writable.
func (x *carrier) protect(r policy.Rule, paths []string, tree bool) {
	for _, p := range paths {
		canon, _, st, err := host.Resolve(x.in.FS, p)
		if !x.holds(r, p) || err == nil && canon == "" {
			if err == nil && x.awaits(r, p) && !x.named(p) {
				x.in.Hides = append(x.in.Hides, planner.Hide{Path: p, Ask: true, Why: r.Origin.String()})
			}
			continue
		}
		override := func(g planner.Grant) bool { return g.Explicit && r.Origin.Scope != policy.ScopeOrg }
		for i := range x.in.Grants {
			g := &x.in.Grants[i]
			if (g.Mode == planner.Write || g.Mode == planner.Overlay) && !override(*g) && slices.ContainsFunc(x.names(*g),
				func(name string) bool { return name == p || tree && host.Within(name, p) }) {
				g.Mode = planner.Read
			}
		}
		switch have := x.modeAt(p); {
		case have != planner.Write && have != planner.Overlay:
		case err != nil:
			x.loss(r, "the place does not exist yet, so that nothing keeps the program from making it")
		case !tree && st.Type == host.Dir:
			x.loss(r, "mounts protect a directory with all that is in it, or not at all")
		case !x.named(p) || r.Origin.Scope == policy.ScopeOrg:
			x.in.Grants = append(x.in.Grants, planner.Grant{Path: p, Mode: planner.Read, Optional: true, Ruled: true,
				Closes: true, Why: r.Origin.String()})
		}
	}
}

// asks hides what somebody wants to be asked about, where nobody is asked. The built-in profiles' lists are about
// what they do not grant anyway.
func (x *carrier) asks() {
	for _, text := range x.s.FS.Ask {
		p, err := pathname.ParsePattern(text, policy.Vars{})
		if err != nil {
			continue
		}
		paths, _, ok := x.places(p)
		if !ok {
			x.in.Losses = append(x.in.Losses, planner.Loss{What: "fs.ask " + quoting.Quote(text),
				Why: "a wildcard may stand only in the last part of a path here"})
		}
		for _, name := range paths {
			if r, ok := x.s.Layers.Policy.Match(policy.Query{Kind: policy.KindPath, Path: name, Access: policy.Read,
				Now: x.now}); (!ok || r.Decision != policy.Allow) && !x.named(name) && name != x.in.Project && name != "/" {
				x.in.Hides = append(x.in.Hides, planner.Hide{Path: name, Ask: !x.static, Why: x.s.Origin("fs.ask")})
			}
		}
	}
}
