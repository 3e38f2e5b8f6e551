package policy

import (
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// Store holds the rules of all scopes. It is a value: copying it and adding session rules leaves the original alone.
type Store struct {
	rules          [ScopeSession + 1][]Rule
	led            []ledRule // see Lead
	closed         closing
	ProjectTrusted bool
}

// Query is one access to look up. Path is clean and absolute for path, exec and socket (or @name for an abstract
// socket); Host and Port are for host.
type Query struct {
	Kind   Kind
	Path   string
	Host   peer.Host
	Port   int
	Access Access
	Now    time.Time
	// Runs says whether a secret is shown to who runs a program; nil: whoever it is for
	Runs func(program string) bool
}

func (s *Store) add(scope Scope, rules []Rule) {
	// A fresh slice, so that a copied Store does not share its tail.
	s.rules[scope] = append(append([]Rule{}, s.rules[scope]...), rules...)
}

// With returns a store with more rules in a scope: command line rules and answers of the session, or the rules of an
// agent's profile, which every file overrides.
func (s Store) With(scope Scope, rules ...Rule) Store {
	for i := range rules {
		rules[i].Origin.Scope = scope
	}
	s.add(scope, rules)
	return s
}

// Replace returns the store with other rules in one scope: what would hold with another file.
func (s Store) Replace(scope Scope, rules []Rule) Store {
	for i := range rules {
		rules[i].Origin.Scope = scope
	}
	s.rules[scope] = append([]Rule{}, rules...)
	return s
}

// Rules lists all rules in merge order.
func (s Store) Rules() []Rule {
	var out []Rule
	for _, r := range s.rules {
		out = append(out, r...)
	}
	return out
}

// Match finds the rule that decides. The org's best rule wins outright if it is final or a deny; otherwise the
// latest scope with a matching rule: command line, user, project, org, and last what an agent's profile says. Within a
// scope the most specific pattern wins, then what ends first about the same, then deny, ask, allow. A rule of a project
// that is not trusted can only deny.
func (s Store) Match(q Query) (Rule, bool) {
	var best [ScopeSession + 1]*Rule
	path := pathname.Split(q.Path)
	for scope := ScopeDefault; scope <= ScopeSession; scope++ {
		best[scope] = s.best(scope, q, path)
	}
	if org := best[ScopeOrg]; org != nil && (org.Final || org.Decision == Deny) {
		return *org, true
	}
	for scope := ScopeSession; scope >= ScopeDefault; scope-- {
		if r := best[scope]; r != nil {
			return s.counted(*r), true
		}
	}
	return Rule{}, false
}

// strange says whether a rule is of a project that is not trusted.
func (s *Store) strange(r *Rule) bool { return r.Origin.Scope == ScopeProject && !s.ProjectTrusted }

// inForce says whether a rule counts: all but what a project that is not trusted says beside what it denies, what any
// project reveals, and what would widen a final key.
func (s *Store) inForce(r *Rule) bool {
	return r.lock == (Origin{}) &&
		(r.Origin.Scope != ScopeProject || r.Decision != Reveal && (s.ProjectTrusted || r.Decision == Deny))
}

// counted is a rule with all that counts of it: one of a project that is not trusted places no decoy.
func (s *Store) counted(r Rule) Rule {
	r.Decoy = r.Decoy && !s.strange(&r)
	return r
}

// OfOthers is the store without the rules of a project that is not trusted: they have no word in what is granted, and
// take nothing away from what others deny or ask about.
func (s Store) OfOthers() Store {
	if !s.ProjectTrusted {
		s.rules[ScopeProject] = nil
	}
	return s
}

func (s *Store) best(scope Scope, q Query, path pathname.Path) *Rule {
	var best *Rule
	for i := range s.rules[scope] {
		r := &s.rules[scope][i]
		if s.inForce(r) && r.matches(q, path) && !s.reopens(r, q) && (best == nil || r.beats(best)) {
			best = r
		}
	}
	for i := range s.led {
		if l := &s.led[i]; l.refuses() && l.Origin.Scope == scope && s.inForce(&l.Rule) && l.matches(q, path) &&
			s.decides(l, q) && (best == nil || l.beats(best)) {
			best = &l.Rule
		}
	}
	return best
}

// reopens says whether a rule would show more of a place than the organisation has closed for good there, however wide
// the rule is. What Widened says of whose rules may is true here too.
func (s *Store) reopens(r *Rule, q Query) bool {
	return r.Decision == Allow && r.Kind != KindHost && r.Kind != KindSocket && r.Origin.Scope != ScopeOrg &&
		r.Origin.Scope != ScopeSession && s.closed.wider(q.Path, q.Access.needs()) != ""
}

// matches leaves out what has expired, and what is for other programs.
func (r *Rule) matches(q Query, path pathname.Path) bool {
	if !r.Expires.IsZero() && !q.Now.Before(r.Expires) || !r.concerns(q.Kind, q.Access) ||
		r.Program != "" && q.Runs != nil && !q.Runs(r.Program) {
		return false
	}
	if r.Kind == KindHost {
		return r.host.Match(q.Host, q.Port, r.Decision == Deny)
	}
	return r.path.MatchSplit(path, false)
}

// concerns says which accesses a rule is about. A grant covers what cannot be had without it or cannot be kept from
// it: write includes read, and read includes names and running, because a mount cannot tell them apart. Names alone
// include nothing. A refusal covers what would defeat it: without read there are no names, no write and no running.
func (r *Rule) concerns(kind Kind, a Access) bool {
	switch r.Kind {
	case KindHost, KindSocket:
		return kind == r.Kind
	case KindExec:
		return (kind == KindPath || kind == KindExec) && a == Exec
	}
	if kind != KindPath && kind != KindExec {
		return false
	}
	switch {
	case a == r.Access:
		return true
	case r.Decision == Allow:
		return r.Access == Write || r.Access == Read && (a == Exec || a == List)
	case r.Decision == Reveal:
		return false
	}
	return r.Access == Read
}

// Same says whether two rules are about the same thing, however their patterns are written (~ or the path it stands
// for): of two that show a secret, to the same program.
func (r *Rule) Same(o *Rule) bool {
	if r.Kind != o.Kind || r.Access != o.Access || r.Decision == Reveal && o.Decision == Reveal && r.Program != o.Program {
		return false
	}
	return r.Pattern == o.Pattern || r.Kind != KindHost && r.path.String() == o.path.String()
}

// EndsBefore says whether o still holds when r does not any more.
func (r *Rule) EndsBefore(o *Rule) bool {
	return !r.Expires.IsZero() && (o.Expires.IsZero() || r.Expires.Before(o.Expires))
}

// beats orders two matching rules of one scope. Of two about the same thing the one that ends first is an exception
// from the other.
func (r *Rule) beats(o *Rule) bool {
	d := 0
	if r.Kind == KindHost {
		d = r.host.Compare(o.host)
	} else {
		d = r.path.Compare(o.path)
	}
	switch {
	case d != 0:
		return d > 0
	case (r.EndsBefore(o) || o.EndsBefore(r)) && r.Same(o):
		return r.EndsBefore(o)
	}
	return r.Decision.strength() > o.Decision.strength()
}

// Restricts reports whether a rule that denies or asks could concern dir or anything below it, so that granting the
// whole tree would go past it.
func (s Store) Restricts(dir string, a Access, now time.Time) bool {
	for _, r := range append(s.Rules(), s.Led()...) {
		if r.Decision.strength() == Allow || !s.inForce(&r) || r.Kind == KindHost || r.Kind == KindSocket ||
			!r.Expires.IsZero() && !now.Before(r.Expires) {
			continue
		}
		if (r.concerns(KindPath, a) || r.Access == List) && r.path.Below(dir) { // who can read a tree can list it
			return true
		}
	}
	return false
}

// Place is that of what is hidden.
func (h Hiding) Place() string { return h.Rule.Place() }

// Sealed says that nothing shows what h hides, whatever anybody allows: it is a secret, and not a socket or merely out
// of sight.
func (h Hiding) Sealed() bool {
	return h.Kind != KindSocket && h.Reason != "fs.hidden" && h.Pattern != wsl &&
		!strings.HasPrefix(h.Reason, "hidden by profile ")
}

// Explicit reports whether r names what h hides, and not merely something around it: an allow whose every match is
// hidden by h. Control sockets are opened by the org only.
func (h Hiding) Explicit(r Rule) bool {
	if r.Decision != Allow || r.Kind == KindHost || h.OrgOnly && r.Origin.Scope != ScopeOrg {
		return false
	}
	return h.Rule.WithTree().Covers(r.path)
}

// notices warns of host rules through which data can leave by the names alone.
func (s Store) notices() []Notice {
	var out []Notice
	for _, r := range s.Rules() {
		switch {
		case r.Kind == KindHost && r.Decision == Allow && r.host.Wide():
			out = append(out, Notice{NoticeWideHost, "rule", r.Origin, excerpt.Quote(r.Pattern) +
				" lets data leave in the names looked up"})
		case s.strange(&r) && (r.Decision == Allow || r.Decision == Ask):
			out = append(out, Notice{NoticeWidening, "rule", r.Origin, "ignored: " + r.Decision.String() + " " +
				excerpt.Quote(r.Pattern) + " in a project file needs `sbx policy trust`"})
		case r.Origin.Scope == ScopeProject && r.Decision == Reveal:
			out = append(out, Notice{NoticeWidening, "rule", r.Origin,
				"ignored: a project file shows no secret, trusted or not"})
		case r.Origin.Scope == ScopeProject && r.Decoy:
			out = append(out, Notice{NoticeWidening, "rule", r.Origin,
				"it hides " + excerpt.Quote(r.Pattern) + ", but a project file places no decoy"})
		}
	}
	return out
}
