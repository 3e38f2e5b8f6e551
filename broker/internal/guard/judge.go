package guard

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// Action is what may be done with a name.
type Action uint8

// The actions.
const (
	Free  Action = iota // no rule: as the user may
	Allow               // like Free, and ends an inherited Guard
	Hide                // it does not exist, and cannot be made
	Guard               // readable; not to be made, written, replaced, moved or removed, with all that is below
	Check               // Guard, but a rename onto it is let through when its new contents are found harmless
	// may be made and removed; what is written to it, or renamed onto it, must be found harmless as a whole
	Text
	Keep // may be written and replaced where it is; not to be made, moved or removed
	// may be taken away; not to be written in place. A rename onto it is let through when the contents are harmless
	Index
)

// Checked says whether a rename onto a name of that action depends on the contents.
func (a Action) Checked() bool { return a == Check || a == Index }

// Rule matches names below a granted directory. Pattern is a slash-separated path relative to the directory; a
// component may hold the wildcards of path.Match, and "**" stands for any number of components. The first rule that
// matches decides. Letter case and invisible characters make no difference, so that a case-folding directory has no
// second spelling of a guarded name.
type Rule struct {
	Pattern string
	Action  Action
	Mkdir   bool // Guard: an empty directory of that name may be made (git init makes .git/hooks)
	Exact   bool // letter case counts: in other letters it is an ordinary name
	BuiltIn bool // does not hold in a repository that the session made itself, see Maker
	// Source: it is about what somebody acts upon who works in a directory. It does not hold in directories of installed
	// packages, which nobody opens as a project, and of the session's own directories only in those that are in no
	// repository of its own.
	Source bool
	Why    string // what acts upon the name

	compiled []component // of Pattern, or nil
}

// Maker says who made the directory that a name is in.
type Maker uint8

// The makers.
const (
	ByHost       Maker = iota // it was there before the session, or takes the place of one that was: all rules hold
	BySession                 // the session made it where none was: of the built-in rules those of Source hold
	InRepository              // and it is in a repository that the session made: no built-in rule holds
)

// Verdict is what a judge says about one name.
type Verdict struct {
	Action Action
	Mkdir  bool
	// Anchored: rules name something below this name literally, as .git/hooks does .git. A file or symlink put there,
	// or a directory moved there, would be unvetted contents at a guarded place.
	Anchored bool
	// Chosen: a rule that is not built in names something below this name, which may be any. A link there would lead to
	// what was judged as ordinary names elsewhere.
	Chosen  bool
	Why     string
	builtIn bool // Anchored by a rule that is built in
	source  bool // said by a rule of Source
	always  bool // said by a rule that is not built in: it holds whoever made the directory
	// Secret is there if the name is one of a secret's: then what has it decides whether it exists, whatever may be done
	// with the name.
	Secret *Secret
}

// Judge knows the rules of one granted directory, compiled to an automaton over path components whose states are
// places. It is pure, but for the places it remembers, and may be asked by many at once.
type Judge struct {
	secrets bool
	rules   []Rule
	comps   [][]component
	special []component // with which names that are special in a repository's directory begin, each once
	sourced func() *index
	mu      sync.Mutex
	places  map[string]*Place
	known   map[step]*Place
}

type component struct {
	text  string // folded, unless it is exact
	glob  bool
	any   bool // **
	exact bool
	// simple: the only wildcard is one star, between before and after
	simple        bool
	before, after string
}

// Place is the policy that holds inside one directory. Places are interned: two of the same policy share one pointer.
type Place struct {
	judge   *Judge
	index   *index
	states  []uint32 // rule<<8 | component, ascending
	inherit Action   // Hide below a hidden directory, Guard below a guarded one, else Free
	why     string   // of what is inherited
	source  bool     // from a rule of Source
	always  bool     // from a rule that is not built in
	within  bool     // in a repository's directory or another whose names are looked for by programs outside
	git     bool     // in a repository's directory
	named   bool     // which is called .git
	public  bool     // below a directory in which nothing is hidden by name
	checks  bool     // a name in the directory is checked
	keeper  *Secret  // in a directory whose name says that all below is a secret
}

// Option is what a judge does beside its rules.
type Option uint8

// HideSecrets finds names of secrets where no rule hides or allows the name (SecretOf).
const HideSecrets Option = 1

// FoldAll lets no rule be exact: where the file system folds letter case, every spelling is the name.
const FoldAll Option = 2

// NewJudge compiles rules.
func NewJudge(rules []Rule, options ...Option) (*Judge, error) {
	j := &Judge{rules: rules, places: make(map[string]*Place), known: make(map[step]*Place),
		secrets: slices.Contains(options, HideSecrets)}
	foldAll := slices.Contains(options, FoldAll)
	for _, r := range rules {
		cs := r.compiled
		if cs == nil || r.Exact && foldAll {
			var err error
			r.Exact = r.Exact && !foldAll
			if cs, err = compile(r); err != nil {
				return nil, fmt.Errorf("compiling rule %q: %w", r.Pattern, err)
			}
		}
		j.comps = append(j.comps, cs)
		for i := range cs[1:] {
			if c := cs[i+1]; cs[i].text == dotGit && !slices.Contains(j.special, c) {
				j.special = append(j.special, c)
			}
		}
	}
	j.sourced = sync.OnceValue(j.indexSourced)
	return j, nil
}

// Literal escapes what a pattern would take for a wildcard.
func Literal(s string) string {
	if !strings.ContainsAny(s, `\*?[`) {
		return s
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// MaxName is the most that a name may have in the file systems that are served (NAME_MAX).
const MaxName = 255

// ValidName says whether a directory can have something under a name.
func ValidName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= MaxName && !strings.ContainsAny(s, "/\x00")
}

// Root is the place inside the granted directory itself.
func (j *Judge) Root() *Place {
	var states []uint32
	for i := range j.comps {
		states = j.add(states, i, 0)
	}
	return j.intern(Place{states: states})
}

// RootAt is Root for a granted directory at an absolute path: one in a repository's directory is judged as a part of
// that.
func (j *Judge) RootAt(granted string) *Place {
	root := j.Root()
	p := root
	for name := range strings.SplitSeq(strings.Trim(granted, "/"), "/") {
		if p != root || Fold(name) == dotGit {
			p = p.Below(name)
		}
	}
	if p == root {
		return root
	}
	next := Place{states: slices.Concat(root.states, p.states), within: true, git: true, named: true, public: p.public,
		keeper:  p.keeper,
		inherit: p.inherit, why: p.why, source: p.source, always: p.always}
	slices.Sort(next.states)
	next.states = slices.Compact(next.states)
	return j.intern(next)
}

// add enters a state and, where "**" may match nothing, those after it.
func (j *Judge) add(states []uint32, rule, at int) []uint32 {
	for {
		s := uint32(rule<<8 | at)
		if n := len(states); n == 0 || states[n-1] < s {
			states = append(states, s)
		}
		if !j.comps[rule][at].any {
			return states
		}
		at++
	}
}

func (j *Judge) intern(p Place) *Place {
	key := make([]byte, 0, 9+len(p.why)+4*len(p.states))
	key = append(key, byte(p.inherit), flag(p.source), flag(p.always), flag(p.within), flag(p.git), flag(p.named),
		flag(p.public), flag(p.keeper != nil), byte(len(p.why)))
	if key = append(key, p.why...); p.keeper != nil {
		key = append(append(key, p.keeper.Pattern...), 0)
	}
	for _, s := range p.states {
		key = append(key, byte(s>>24), byte(s>>16), byte(s>>8), byte(s))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.places[string(key)]; known != nil {
		return known
	}
	p.judge, p.index = j, newIndex(j, p.states)
	for _, s := range p.states {
		i, at := int(s>>8), int(s&255)
		p.checks = p.checks || j.rules[i].Action == Check && at+1 == len(j.comps[i])
	}
	j.places[string(key)] = &p
	return &p
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (c *component) matches(name, folded string) bool {
	if c.exact {
		folded = name
	}
	switch {
	case !c.glob:
		return c.text == folded
	case c.simple:
		return len(folded) >= len(c.before)+len(c.after) && strings.HasPrefix(folded, c.before) &&
			strings.HasSuffix(folded, c.after)
	}
	ok, _ := path.Match(c.text, folded)
	return ok
}

// Rule says what may be done with a name in the place, in a directory that m made. Nothing outside acts upon a place
// that was not there, but a person may open any directory and work in it.
func (p *Place) Rule(name string, m Maker) Verdict {
	if p.Hidden() {
		return Verdict{Action: Hide, Why: p.why}
	}
	v := Verdict{Action: p.inherit, Why: p.why, source: p.source, always: p.always}
	if !m.under(!p.always, p.source) {
		v = Verdict{}
	}
	inherited, decided := v.Action == Guard, false
	var buf [16]uint32
	for _, s := range p.matching(buf[:0], name, Fold(name)) {
		i, at := int(s>>8), int(s&255)
		c, r := &p.judge.comps[i][at], &p.judge.rules[i]
		if !m.under(r.BuiltIn, r.Source) {
			continue
		}
		if at+1 < len(p.judge.comps[i]) {
			v.Anchored = v.Anchored || !c.glob
			v.builtIn = v.builtIn || !c.glob && r.BuiltIn
			v.Chosen = v.Chosen || r.Action == Guard && r.keepsBelow(c)
			continue
		}
		if !decided {
			decided = true
			if !inherited || !r.loosens() {
				v.Action, v.Mkdir, v.Why, v.source = r.Action, r.Mkdir && !inherited, r.Why, r.Source
				v.always = !r.BuiltIn
			}
		}
	}
	if p.judge.secrets && !p.public && v.Action != Hide && v.Action != Allow {
		if v.Secret = SecretOf(name, false); v.Secret == nil {
			v.Secret = p.keeper
		}
	}
	if v.Action == Allow {
		v.Action, v.Why = Free, ""
	}
	return v
}

// loosens says whether a rule about repositories would let something be made, written or taken away that a guarded
// directory above does not: a .git in .claude/skills is a skill of that name, and no repository that anybody needs.
func (r *Rule) loosens() bool {
	return r.BuiltIn && (r.Action == Text || r.Action == Keep || r.Action.Checked())
}

// under says whether a rule holds in a directory that m made.
func (m Maker) under(builtIn, source bool) bool {
	return m == ByHost || !builtIn || m == BySession && source
}

// below is what Below remembers.
func (p *Place) below(name string) *Place {
	v := p.Rule(name, ByHost)
	if v.Action == Hide {
		return p.judge.intern(Place{within: true, inherit: Hide, why: v.Why})
	}
	next := Place{within: p.within || v.builtIn || v.Action != Free, git: p.git, named: p.named}
	if v.Action == Guard || v.Action == Check {
		next.inherit, next.why, next.source, next.always = Guard, v.Why, v.source, v.always
	}
	folded := Fold(name)
	if folded == dotGit {
		next.git, next.named = true, true
	}
	next.public = p.public || next.named || Dependency(folded)
	if next.keeper = p.keeper; p.judge.secrets && !next.public {
		if k := SecretOf(name, true); k != nil {
			next.keeper = k
		}
	}
	if next.public {
		next.keeper = nil
	}
	packages := Dependency(folded)
	found := p.matching(slices.Clone(p.index.anys), name, folded)
	for _, s := range found {
		i, at := int(s>>8), int(s&255)
		switch {
		case packages && p.judge.rules[i].Source:
		case folded == dotGit && p.inherit == Guard && p.judge.rules[i].BuiltIn: // nothing of it may change
		case p.judge.comps[i][at].any:
			next.states = p.judge.add(next.states, i, at)
		case at+1 < len(p.judge.comps[i]):
			next.states = p.judge.add(next.states, i, at+1)
		}
	}
	next.within = next.within || p.judge.awaits(next.states)
	return p.judge.intern(next)
}

// Repository is the place inside a directory that is a repository by itself, as git finds bare ones: it has a HEAD.
// What is guarded in a .git is guarded there. In a .git other directories have a HEAD as well (logs, worktrees/NAME)
// and are none.
func (p *Place) Repository() *Place {
	if p.named {
		return p
	}
	next := Place{within: true, git: true, public: p.public, keeper: p.keeper, inherit: p.inherit, why: p.why,
		source: p.source}
	for i, cs := range p.judge.comps {
		for at := range cs {
			s := uint32(i<<8 | at)
			own := p.judge.rules[i].Action == Allow && at+1 == len(cs) // .git/HEAD: here that is what makes it a repository
			if p.has(s) || at > 0 && !own && !cs[at-1].any && cs[at-1].text == dotGit && p.has(s-1) {
				next.states = p.judge.add(next.states, i, at)
			}
		}
	}
	return p.judge.intern(next)
}

func (p *Place) has(state uint32) bool { return slices.Contains(p.states, state) }

// Free reports whether everything below passes through, so that a native mount would show the same.
func (p *Place) Free() bool {
	return len(p.states) == 0 && p.inherit == Free && (p.public || !p.judge.secrets)
}

// Alike reports whether names at every depth below both places are treated alike, so that a directory may move from one
// to the other.
func (p *Place) Alike(q *Place) bool {
	return p.inherit == q.inherit && p.source == q.source && p.git == q.git && p.named == q.named &&
		p.public == q.public && p.keeper == q.keeper && slices.Equal(p.states, q.states)
}

// Unpacks reports whether what a person acts upon who works in a directory is guarded in p and not in q, as in one of
// installed packages: what comes from there has not been judged by p.
func (p *Place) Unpacks(q *Place) bool { return p.sources() && !q.sources() }

// Packed reports whether that is so of the place itself: it is in a directory of packages.
func (p *Place) Packed() bool { return p.public && !p.sources() }

// Waits reports whether a name in the place is a part of what is guarded where there are no packages: a directory that
// gets there brings it along.
func (p *Place) Waits(name string) bool {
	return p.Packed() && len(p.judge.matching(nil, p.judge.sourced(), name, Fold(name))) > 0
}

func (p *Place) sources() bool {
	return slices.ContainsFunc(p.states, func(s uint32) bool { return p.judge.rules[s>>8].Source })
}

// Hidden reports whether the directory does not exist, nor anything in it, whoever makes it.
func (p *Place) Hidden() bool { return p.inherit == Hide }

// Open reports whether the directory itself may be changed.
func (p *Place) Open() bool { return p.inherit == Free }

// Checks reports whether the contents of a name in the place are looked at.
func (p *Place) Checks() bool { return p.checks }

// Git reports whether the place is in a repository's directory: a link made there could show git another one.
func (p *Place) Git() bool { return p.git }

// MayLink says whether a symbolic link in the place, which the session did not make, may hold text. In a repository's
// directory git writes files of known names, following links: the message of a commit, say. So there a link leads to an
// ordinary name beside it, as git's trial of links does.
func (p *Place) MayLink(text string) bool {
	if !p.git {
		return true
	}
	v := p.Rule(text, ByHost)
	return ValidName(text) && v.Action == Free && !v.Anchored
}

// At says what the judge says of the name at rel, a path relative to the granted directory. Repository, which may be
// nil, tells directories that have a HEAD.
func (j *Judge) At(rel string, repository func(dir string) bool) Verdict {
	p := j.Root()
	for start := 0; ; {
		if repository != nil && !p.Hidden() && repository(rel[:max(start-1, 0)]) {
			p = p.Repository()
		}
		name, _, below := strings.Cut(rel[start:], "/")
		if !below {
			return p.Rule(name, ByHost)
		}
		p = p.Below(name)
		start += len(name) + 1
	}
}
