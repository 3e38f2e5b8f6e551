package guard

import "strings"

// step leads from a place to the one inside a directory there.
type step struct {
	from *Place
	name string
}

// maxKnown bounds the steps that are remembered.
const maxKnown = 1 << 12

// Below is the place inside the directory of that name. Each call on a path goes the same steps again.
func (p *Place) Below(name string) *Place {
	j := p.judge
	j.mu.Lock()
	next := j.known[step{p, name}]
	j.mu.Unlock()
	if next != nil {
		return next
	}
	next = p.below(name)
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.known) >= maxKnown {
		clear(j.known)
	}
	j.known[step{p, strings.Clone(name)}] = next
	return next
}
