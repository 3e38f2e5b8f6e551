package gatefs

import (
	"fmt"
	"path"
	"strings"
	"sync"

	"sbx/broker/internal/guard"
)

// reservedPrefix names the files that replaceChecked makes for a moment. They are hidden, so that nobody inside can hold one open.
const reservedPrefix = ".sbx-replace-"

// ruleset is the rules of one guarded directory, compiled to an automaton over path components whose states are zones.
type ruleset struct {
	rules []Rule
	comps [][]component
	mu    sync.Mutex
	zones map[string]*zone
}

type component struct {
	text string // folded
	glob bool
	any  bool // **
}

// zone is the policy that holds inside one directory. Zones are interned: two directories whose inhabitants are treated alike
// at every depth share one pointer, which makes "may this directory move there" a comparison.
type zone struct {
	set     *ruleset
	states  []uint16 // rule<<8 | component, ascending
	inherit Action   // Guard below a guarded directory, else Plain
	checks  bool     // a name in the directory is checked
}

// ruling is what a zone says about one name.
type ruling struct {
	action Action
	mkdir  bool
	// anchored: rules name something below this name literally, as .git/hooks does .git. A file or symlink put there,
	// or a directory moved there, would be unvetted contents at a guarded place.
	anchored bool
}

func compile(rules []Rule) (*ruleset, error) {
	if len(rules) > 255 {
		return nil, fmt.Errorf("compiling rules: %d rules, at most 255 fit", len(rules))
	}
	set := &ruleset{rules: rules, zones: make(map[string]*zone)}
	for _, r := range rules {
		parts := strings.Split(r.Pattern, "/")
		if len(parts) > 255 {
			return nil, fmt.Errorf("compiling rule %q: too many components", r.Pattern)
		}
		cs := make([]component, len(parts))
		for i, p := range parts {
			if p == "**" {
				cs[i] = component{any: true}
				continue
			}
			if !validName(p) {
				return nil, fmt.Errorf("compiling rule %q: component %q is not a name", r.Pattern, p)
			}
			cs[i] = component{text: guard.Fold(p), glob: strings.ContainsAny(p, `*?[\`)}
			if _, err := path.Match(cs[i].text, ""); err != nil {
				return nil, fmt.Errorf("compiling rule %q: %w", r.Pattern, err)
			}
		}
		if cs[len(cs)-1].any {
			return nil, fmt.Errorf("compiling rule %q: ** must be followed by a name", r.Pattern)
		}
		if r.Action == Plain {
			return nil, fmt.Errorf("compiling rule %q: no action", r.Pattern)
		}
		set.comps = append(set.comps, cs)
	}
	return set, nil
}

func (set *ruleset) start() *zone {
	var states []uint16
	for i := range set.comps {
		states = set.add(states, i, 0)
	}
	return set.intern(states, Plain)
}

// add enters a state and, where "**" may match nothing, those after it.
func (set *ruleset) add(states []uint16, rule, at int) []uint16 {
	for {
		s := uint16(rule<<8 | at)
		if n := len(states); n == 0 || states[n-1] < s {
			states = append(states, s)
		}
		if !set.comps[rule][at].any {
			return states
		}
		at++
	}
}

func (set *ruleset) intern(states []uint16, inherit Action) *zone {
	key := make([]byte, 1, 1+2*len(states))
	key[0] = byte(inherit)
	for _, s := range states {
		key = append(key, byte(s>>8), byte(s))
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	z := set.zones[string(key)]
	if z == nil {
		z = &zone{set: set, states: states, inherit: inherit}
		for _, s := range states {
			i, at := int(s>>8), int(s&255)
			z.checks = z.checks || set.rules[i].Action == Check && at+1 == len(set.comps[i])
		}
		set.zones[string(key)] = z
	}
	return z
}

func (c component) matches(folded string) bool {
	if !c.glob {
		return c.text == folded
	}
	ok, _ := path.Match(c.text, folded)
	return ok
}

// rule says what may be done with a name in the zone.
func (z *zone) rule(name string) ruling {
	if strings.HasPrefix(name, reservedPrefix) {
		return ruling{action: Hide}
	}
	r := ruling{action: z.inherit}
	decided := false
	folded := guard.Fold(name)
	for _, s := range z.states {
		i, at := int(s>>8), int(s&255)
		c := z.set.comps[i][at]
		if c.any || !c.matches(folded) {
			continue
		}
		if at+1 < len(z.set.comps[i]) {
			r.anchored = r.anchored || !c.glob
			continue
		}
		if !decided {
			decided = true
			r.action, r.mkdir = z.set.rules[i].Action, z.set.rules[i].Mkdir
		}
	}
	if r.action == Allow {
		r.action = Plain
	}
	return r
}

// below is the zone inside the directory of that name.
func (z *zone) below(name string) *zone {
	inherit := Plain
	if a := z.rule(name).action; a == Guard || a == Check {
		inherit = Guard
	}
	folded := guard.Fold(name)
	var states []uint16
	for _, s := range z.states {
		i, at := int(s>>8), int(s&255)
		c := z.set.comps[i][at]
		switch {
		case c.any:
			states = z.set.add(states, i, at)
		case at+1 < len(z.set.comps[i]) && c.matches(folded):
			states = z.set.add(states, i, at+1)
		}
	}
	return z.set.intern(states, inherit)
}

// ActionOf says what rules do to the name at rel, a path relative to the guarded directory.
func ActionOf(rules []Rule, rel string) (Action, error) {
	set, err := compile(rules)
	if err != nil {
		return Hide, err
	}
	z := set.start()
	parts := strings.Split(rel, "/")
	for _, name := range parts[:len(parts)-1] {
		if z.rule(name).action == Hide {
			return Hide, nil // and all below
		}
		z = z.below(name)
	}
	return z.rule(parts[len(parts)-1]).action, nil
}

// free reports whether everything below passes through, so that a native mount would show the same.
func (z *zone) free() bool {
	return len(z.states) == 0 && z.inherit == Plain
}
