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
