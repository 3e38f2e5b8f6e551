package policy

import "sbx.example/sbx/broker/internal/policy/pathname"

// ledRule is a rule at the place that its path leads to.
type ledRule struct {
	Rule
	way pathname.Way
}

// Lead finds where the paths of rules lead to: there those that label, deny or ask act as well, since accesses are
// named by that. Resolve says where a path does.
func (s Store) Lead(resolve func(string) string) Store {
	s.led = nil
	for _, r := range s.Rules() {
		if way, leads := r.path.Lead(resolve); leads {
			r.path = way.To
			s.led = append(s.led, ledRule{r, way})
		}
	}
	return s
}

// Names are those by which rules that allow have what is at a place that their paths lead to.
func (s Store) Names(place string) (out []string) {
	for i := range s.led {
		l := &s.led[i]
		if name, ok := l.way.Back(place); ok && l.Decision == Allow && s.inForce(&l.Rule) {
			out = append(out, name)
		}
	}
	return out
}

func (r *Rule) refuses() bool { return r.Decision == Deny || r.Decision == Ask }

// Led are the rules in force that deny or ask, at the places that their paths lead to.
func (s Store) Led() (out []Rule) {
	for i := range s.led {
		if l := &s.led[i]; l.refuses() && s.inForce(&l.Rule) {
			out = append(out, s.counted(l.Rule))
		}
	}
	return out
}

// decides says whether a rule denies or asks about what lies where its path leads to. It has no more to say there than
// about the same thing by the name that it uses: a narrower rule may allow that by the same link.
func (s Store) decides(l *ledRule, q Query) bool {
	name, leads := l.way.Back(q.Path)
	s.led, q.Path = nil, name
	hit, ok := s.Match(q)
	return ok && leads && hit.Decision == l.Decision
}
