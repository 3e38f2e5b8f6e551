package guard

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// index finds the states of a place whose component matches a name, without looking at each: a project has hundreds of
// rules and a call that makes a file is judged by them.
type index struct {
	folded, exact map[string][]uint32 // literal components
	globs         []uint32
	anys          []uint32 // states that wait for any number of components
}

func newIndex(j *Judge, states []uint32) *index {
	x := &index{folded: map[string][]uint32{}, exact: map[string][]uint32{}}
	for _, s := range states {
		switch c := &j.comps[s>>8][s&255]; {
		case c.any:
			x.anys = append(x.anys, s)
		case c.glob:
			x.globs = append(x.globs, s)
		case c.exact:
			x.exact[c.text] = append(x.exact[c.text], s)
		default:
			x.folded[c.text] = append(x.folded[c.text], s)
		}
	}
	return x
}

// matching appends the states whose component matches name, in the order of the rules.
func (p *Place) matching(out []uint32, name, folded string) []uint32 {
	return p.judge.matching(out, p.index, name, folded)
}

func (j *Judge) matching(out []uint32, x *index, name, folded string) []uint32 {
	out = append(append(out, x.folded[folded]...), x.exact[name]...)
	for _, s := range x.globs {
		if j.comps[s>>8][s&255].matches(name, folded) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// indexSourced is of the parts of all rules of Source.
func (j *Judge) indexSourced() *index {
	var states []uint32
	for i, cs := range j.comps {
		for at := range cs {
			if j.rules[i].Source {
				states = append(states, uint32(i<<8|at))
			}
		}
	}
	return newIndex(j, states)
}

// simple splits a pattern whose only wildcard is one star.
func simple(pattern string) (before, after string, ok bool) {
	before, after, ok = strings.Cut(pattern, "*")
	return before, after, ok && !strings.ContainsAny(after, `*?[\`) && !strings.ContainsAny(before, `?[\`)
}

// MentionsRepository says whether a part of a path is special in a repository's directory, so that it matters whether
// it lies in one.
func (p *Place) MentionsRepository(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		folded := Fold(part)
		for i := range p.judge.special {
			if p.judge.special[i].matches(part, folded) {
				return true
			}
		}
	}
	return false
}

func compile(r Rule) ([]component, error) {
	n := 1 + strings.Count(r.Pattern, "/")
	if n > 255 {
		return nil, fmt.Errorf("too many components")
	}
	cs := make([]component, 0, n)
	for p := range strings.SplitSeq(r.Pattern, "/") {
		if p == "**" {
			cs = append(cs, component{any: true})
			continue
		}
		if !ValidName(p) {
			return nil, fmt.Errorf("component %q is not a name", p)
		}
		c := component{text: p, glob: strings.ContainsAny(p, `*?[\`), exact: r.Exact}
		if !r.Exact {
			c.text = Fold(p)
		}
		c.before, c.after, c.simple = simple(c.text)
		if c.glob {
			if _, err := path.Match(c.text, ""); err != nil {
				return nil, err
			}
		}
		cs = append(cs, c)
	}
	if cs[len(cs)-1].any {
		return nil, fmt.Errorf("** must be followed by a name")
	}
	if r.Action == Free {
		return nil, fmt.Errorf("no action")
	}
	return cs, nil
}
