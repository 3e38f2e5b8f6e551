package guard

import "slices"

// Ordinary reports whether a directory made in the place can be the session's own: nothing outside looks for names
// there.
func (p *Place) Ordinary() bool { return !p.within && p.inherit == Free }

// awaits says whether a rule that is not built in has begun, and goes on with a name that may be any. One that goes on
// with a certain name says so of that name alone (Anchored).
func (j *Judge) awaits(states []uint32) bool {
	return slices.ContainsFunc(states, func(s uint32) bool {
		rule, at := s>>8, s&0xff
		c := j.comps[rule]
		begun := slices.ContainsFunc(c[:at], func(c component) bool { return !c.any })
		return begun && (c[at].glob || c[at].any) && !j.rules[rule].BuiltIn
	})
}

// Chosen says whether what a rule that is not built in keeps below this directory is about the directory by its name,
// which may be any: consent to one of several projects, say. With another name it would be about another.
func (p *Place) Chosen() bool {
	return slices.ContainsFunc(p.states, func(s uint32) bool {
		rule, at := s>>8, s&0xff
		return at > 0 && p.judge.rules[rule].keepsBelow(&p.judge.comps[rule][at-1])
	})
}

// keepsBelow says whether a rule that is not built in keeps something below names that may be any, where c is what it
// says of those.
func (r *Rule) keepsBelow(c *component) bool {
	return c.glob && !c.any && !r.BuiltIn && r.Action != Allow
}
