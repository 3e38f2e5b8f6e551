package pathname

import "strings"

// Covers reports that everything q matches p matches too. It may miss such a pair, never invent one.
func (p Pattern) Covers(q Pattern) bool {
	if p.abstract != q.abstract {
		return false
	}
	if p.abstract {
		return p.comps[0].covers(q.comps[0])
	}
	fits := func(i, j int) bool { return p.comps[i].covers(q.comps[j]) }
	return walk(p.comps, len(q.comps), fits, false)
}

func (c comp) covers(d comp) bool {
	switch {
	case d.kind == compTree:
		return false
	case c.kind == compAny || c.kind == compTree:
		return true
	case d.kind == compLiteral:
		return c.matches(d.parts[0])
	case c.kind == compPartial && d.kind == compPartial && len(c.parts) == 2:
		return strings.HasPrefix(d.parts[0], c.parts[0]) && strings.HasSuffix(d.parts[len(d.parts)-1], c.parts[1])
	case c.kind == compPartial && d.kind == compPartial:
		return strings.Join(c.parts, "*") == strings.Join(d.parts, "*")
	}
	return false
}

// Below reports whether the pattern could match dir or anything in its tree.
func (p Pattern) Below(dir string) bool {
	if p.abstract {
		return false
	}
	for i, name := range components(dir) {
		switch {
		case i == len(p.comps):
			return false
		case p.comps[i].kind == compTree:
			return true
		case !p.comps[i].matches(name):
			return false
		}
	}
	return true
}

// Compare is positive if p is more specific than q: from the left, a literal name says more than a partial one,
// that more than *, that more than **; a pattern that stops exactly says more than one that goes on with **.
func (p Pattern) Compare(q Pattern) int {
	for i := 0; i < len(p.comps) || i < len(q.comps); i++ {
		if d := p.rank(i) - q.rank(i); d != 0 {
			return d
		}
		if i < len(p.comps) && i < len(q.comps) {
			if d := p.comps[i].size() - q.comps[i].size(); d != 0 {
				return d
			}
		}
	}
	return 0
}

func (p Pattern) rank(i int) int {
	switch {
	case i < len(p.comps):
		return int(p.comps[i].kind)
	case i > 0 && i == len(p.comps) && p.comps[i-1].kind == compTree:
		return -1
	}
	return int(compLiteral) + 1
}

// size breaks ties between partial names; literals that both match the same path are equal anyway.
func (c comp) size() int {
	if c.kind != compPartial {
		return 0
	}
	n := 0
	for _, p := range c.parts {
		n += len(p)
	}
	return n
}

// Literal returns the one path that a pattern without wildcards matches.
func (p Pattern) Literal() (string, bool) {
	dir, ok := p.Names()
	n := len(p.comps) - 1
	if !ok || p.comps[n].kind != compLiteral {
		return "", false
	}
	return strings.TrimSuffix(dir, "/") + "/" + p.comps[n].parts[0], true
}

// Names returns the directory in which alone the pattern matches names: only its last component may be a wildcard.
func (p Pattern) Names() (dir string, ok bool) {
	n := len(p.comps) - 1
	if n < 0 || p.abstract || p.comps[n].kind == compTree {
		return "", false
	}
	return p.parent()
}

// Place is what a pattern is about: a path, or the top of a tree; "" where it has another wildcard.
func (p Pattern) Place() string {
	if dir, ok := p.Tree(); ok {
		return dir
	}
	place, _ := p.Literal()
	return place
}

// Within says whether a path is the directory dir or lies below it.
func Within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
