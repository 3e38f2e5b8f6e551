package policy

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// Bound is a store in which no rule counts that would widen what the organisation has made final, and what is to be
// said of those.
func (e Effective) Bound(s Store) (Store, []Notice) {
	var out []Notice
	if len(e.Locked) == 0 {
		return s, nil
	}
	s.closed = e.closed
	for scope := range s.rules {
		s.rules[scope] = slices.Clone(s.rules[scope])
		for i := range s.rules[scope] {
			r := &s.rules[scope][i]
			key, lock := e.Widened(*r)
			if r.lock = lock; key != "" {
				out = append(out, Notice{NoticeLocked, "rule", r.Origin, "ignored: " + r.Decision.String() + " " +
					excerpt.Quote(r.Pattern) + " would widen " + key + ", and " + lock.String() + " has made it final"})
			}
		}
	}
	return s, out
}

// Widened is the key that a rule would widen although the organisation has made it final, and where it did; "" for
// none. The organisation's own rules may, and so may what a person answers while a session runs.
func (e Effective) Widened(r Rule) (key string, lock Origin) {
	if r.Decision != Allow || r.Origin.Scope == ScopeOrg || r.Origin.Scope == ScopeSession {
		return "", Origin{}
	}
	switch {
	case r.Kind == KindHost:
		return e.widenedHosts(r.host)
	case r.Kind == KindSocket:
		return "", Origin{}
	case r.Access == Write:
		key = "fs.writable"
	default:
		key = "fs.read_only"
	}
	if inside := e.closed.wider(r.path.Fixed(), r.Access.needs()); inside != "" {
		return inside, e.Locked[inside]
	}
	lock, locked := e.Locked[key]
	if !locked || e.shows(key, r.path) {
		return "", Origin{}
	}
	return key, lock
}

// shows says whether settings let all be written, or only read, that a pattern is about.
func (e Effective) shows(key string, p pathname.Pattern) bool {
	list := e.list("fs.writable")
	if key != "fs.writable" {
		list = slices.Concat(list, e.FS.ReadOnly, e.Profile.ReadOnly, e.list("fs.overlay"))
	}
	return slices.ContainsFunc(list, func(name string) bool {
		name, _ = pathname.SplitOptional(name)
		place, err := pathname.ParsePattern(pathname.Escape(path.Clean(name)), Vars{})
		return err == nil && place.WithTree().Covers(p)
	})
}

// At is the rule as if it were written about one path.
func (r Rule) At(p string) (Rule, error) {
	r.Pattern = pathname.Escape(p)
	return NewRule(r, Vars{})
}

// Lock is where the organisation has made final what the rule would widen, for which it does not count; see Bound.
func (r Rule) Lock() (Origin, bool) { return r.lock, r.lock != Origin{} }
