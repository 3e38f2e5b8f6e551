package pathname

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

type compKind uint8

// Ordered by how much a component says about a name; Compare relies on it.
const (
	compTree    compKind = iota // ** : any number of components, none included
	compAny                     // *  : one component
	compPartial                 // a*b
	compLiteral
)

type comp struct {
	kind  compKind
	parts []string // literal text between the stars
}

// Pattern matches absolute paths component by component, on bytes. Grammar:
//
//	/x        this path        /x/*   every direct child    /x/**   /x and everything below
//	/x/a*b    part of a name   /x/**/y  y anywhere below /x
//	~  $PROJECT  (and in org and user files $HOME, $TMPDIR, $XDG_…)  at the very start only
//	\xHH \* \\  one byte literally, so any Linux name can be written
//	@name     an abstract socket
type Pattern struct {
	comps    []comp
	abstract bool
}

const (
	maxPath  = 4095 // PATH_MAX without NUL
	maxComps = 64   // of a pattern; real trees are a fraction of this
)

// ParsePattern reads pattern text. Variables come from vars; nothing else is expanded.
func ParsePattern(text string, vars Vars) (Pattern, error) {
	p, err := parsePattern(text, vars)
	if err != nil {
		return Pattern{}, fmt.Errorf("reading pattern %s: %w", excerpt.Quote(text), err)
	}
	return p, nil
}

func parsePattern(text string, vars Vars) (Pattern, error) {
	if len(text) > 2*maxPath {
		return Pattern{}, errors.New("it is too long")
	}
	if name, ok := strings.CutPrefix(text, "@"); ok {
		c, err := parseComp(name)
		if err != nil {
			return Pattern{}, err
		}
		return Pattern{comps: []comp{c}, abstract: true}, nil
	}
	base, rest, err := vars.split(text)
	if err != nil {
		return Pattern{}, err
	}
	literal := components(base)
	p := Pattern{comps: make([]comp, 0, len(literal)+strings.Count(rest, "/")+1)}
	for i := range literal {
		p.comps = append(p.comps, comp{compLiteral, literal[i : i+1 : i+1]})
	}
	for s := range strings.SplitSeq(rest, "/") {
		if s == "" || s == "." {
			continue
		}
		c, err := parseComp(s)
		if err != nil {
			return Pattern{}, err
		}
		// a/**/** says no more than a/**, and one spelling keeps Compare exact.
		if n := len(p.comps); c.kind == compTree && n > 0 && p.comps[n-1].kind == compTree {
			continue
		}
		p.comps = append(p.comps, c)
	}
	if len(p.comps) > maxComps {
		return Pattern{}, fmt.Errorf("it has more than %d components", maxComps)
	}
	return p, nil
}

// parseComp reads one component and resolves its escapes.
func parseComp(s string) (comp, error) {
	switch s {
	case "**":
		return comp{kind: compTree}, nil
	case "*":
		return comp{compAny, []string{"", ""}}, nil
	case "":
		return comp{}, errors.New("it is empty")
	}
	parts := []string{}
	var cur []byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '*':
			if i+1 < len(s) && s[i+1] == '*' {
				return comp{}, errors.New("** must be a whole component")
			}
			parts = append(parts, string(cur))
			cur = nil
		case '\\':
			b, n, err := unescape(s[i:])
			if err != nil {
				return comp{}, err
			}
			cur = append(cur, b)
			i += n - 1
		case 0:
			return comp{}, errors.New("it contains NUL")
		default:
			cur = append(cur, c)
		}
	}
	parts = append(parts, string(cur))
	if len(parts) > 1 {
		return comp{compPartial, parts}, nil
	}
	if parts[0] == ".." || parts[0] == "." {
		return comp{}, fmt.Errorf("%s is not allowed as a component; write the path it leads to", parts[0])
	}
	return comp{compLiteral, parts}, nil
}

func unescape(s string) (b byte, n int, err error) {
	if len(s) >= 2 && (s[1] == '\\' || s[1] == '*') {
		return s[1], 2, nil
	}
	if len(s) >= 4 && s[1] == 'x' {
		u, err := strconv.ParseUint(s[2:4], 16, 8)
		if err == nil && u != 0 && u != '/' {
			return byte(u), 4, nil
		}
	}
	return 0, 0, errors.New(`a backslash must start \\, \* or \xHH (not NUL or /)`)
}

// components splits a clean absolute path; "/" has none.
func components(path string) []string {
	if len(path) < 2 {
		return nil
	}
	return strings.Split(path[1:], "/")
}

// Clean normalises what may stand for a path: // and /./ and a trailing / vanish; everything else that has two
// readings (empty, relative, .., NUL, overlong) is refused. It never looks at the file system.
func Clean(s string) (string, error) {
	switch {
	case s == "":
		return "", errors.New("empty path")
	case len(s) > maxPath:
		return "", errors.New("path longer than PATH_MAX")
	case s[0] != '/':
		return "", errors.New("path is not absolute")
	case strings.IndexByte(s, 0) >= 0:
		return "", errors.New("path contains NUL")
	}
	if !needsClean(s) {
		return s, nil
	}
	var out []byte
	for _, c := range strings.Split(s, "/") {
		switch c {
		case "", ".":
		case "..":
			return "", errors.New("path with .. in it")
		default:
			out = append(append(out, '/'), c...)
		}
	}
	if len(out) == 0 {
		return "/", nil
	}
	return string(out), nil
}

func needsClean(s string) bool {
	return len(s) > 1 && s[len(s)-1] == '/' || strings.Contains(s, "//") || strings.Contains(s, "/.")
}

// Match reports whether the pattern matches path, which must be clean (see Clean); an unclean path never matches.
func (p Pattern) Match(path string) bool { return p.match(path, false) }

// MatchTree reports whether the pattern matches path or a directory above it.
func (p Pattern) MatchTree(path string) bool { return p.match(path, true) }

func (p Pattern) match(path string, below bool) bool {
	return p.MatchSplit(Split(path), below)
}

// Path is a path taken apart once for many patterns.
type Path struct {
	names    []string
	abstract string // without its @
	bad      bool
}

// Split takes a path, or the name of an abstract socket, apart.
func Split(path string) Path {
	if name, ok := strings.CutPrefix(path, "@"); ok {
		return Path{abstract: name, bad: name == ""}
	}
	if clean, err := Clean(path); err != nil || clean != path {
		return Path{bad: true}
	}
	return Path{names: components(path)}
}

// MatchSplit is Match, or with below MatchTree, of a path that was taken apart.
func (p Pattern) MatchSplit(s Path, below bool) bool {
	if s.bad || p.abstract != (s.abstract != "") {
		return false
	}
	if p.abstract {
		return p.comps[0].matches(s.abstract)
	}
	// Most patterns fail here, before anything is walked.
	if len(p.comps) > 0 && p.comps[0].kind == compLiteral && (len(s.names) == 0 || p.comps[0].parts[0] != s.names[0]) {
		return false
	}
	fits := func(i, j int) bool { return p.comps[i].matches(s.names[j]) }
	return walk(p.comps, len(s.names), fits, below)
}

// walk is glob matching one level up: ** is the star, components are the characters. Going back to the last ** only
// is enough and keeps it quadratic at worst.
func walk(comps []comp, n int, fits func(i, j int) bool, below bool) bool {
	i, j, backI, backJ := 0, 0, -1, 0
	for {
		switch {
		case i == len(comps) && (j == n || below):
			return true
		case i < len(comps) && comps[i].kind == compTree:
			backI, backJ = i, j
			i++
			continue
		case i < len(comps) && j < n && fits(i, j):
			i++
			j++
			continue
		}
		if backI < 0 || backJ >= n {
			return false
		}
		backJ++
		i, j = backI+1, backJ
	}
}

func (c comp) matches(name string) bool {
	switch c.kind {
	case compTree, compAny:
		return true
	case compLiteral:
		return c.parts[0] == name
	}
	return glob(c.parts, name)
}

// glob matches name against literal parts with stars between them.
func glob(parts []string, name string) bool {
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// Abstract says whether the pattern is about abstract sockets.
func (p Pattern) Abstract() bool { return p.abstract }

// WithTree is the pattern of everything below what p matches; an abstract socket has nothing below it.
func (p Pattern) WithTree() Pattern {
	if p.abstract {
		return p
	}
	return Pattern{comps: append(append([]comp{}, p.comps...), comp{kind: compTree})}
}

// Tree returns the directory of a pattern of the form /x/**.
func (p Pattern) Tree() (dir string, ok bool) {
	n := len(p.comps) - 1
	if n < 0 || p.abstract || p.comps[n].kind != compTree {
		return "", false
	}
	return p.parent()
}

// Moved is the pattern with the path before its first wildcard replaced by what lead makes of that path.
func (p Pattern) Moved(lead func(string) string) Pattern {
	fixed, rest := p.fixed()
	var out Pattern
	for _, name := range components(lead(fixed)) {
		out.comps = append(out.comps, comp{compLiteral, []string{name}})
	}
	out.comps = append(out.comps, rest...)
	return out
}

// Fixed is the path before a pattern's first wildcard.
func (p Pattern) Fixed() string {
	dir, _ := p.fixed()
	return dir
}

func (p Pattern) fixed() (dir string, rest []comp) {
	n := 0
	dir = "/"
	for ; n < len(p.comps) && p.comps[n].kind == compLiteral; n++ {
		dir = path.Join(dir, p.comps[n].parts[0])
	}
	return dir, p.comps[n:]
}

// parent is the directory above the last component, of a pattern that has one and no wildcard before it.
func (p Pattern) parent() (dir string, ok bool) {
	n := len(p.comps) - 1
	var b strings.Builder
	for _, c := range p.comps[:n] {
		if c.kind != compLiteral {
			return "", false
		}
		b.WriteString("/" + c.parts[0])
	}
	if n == 0 {
		return "/", true
	}
	return b.String(), true
}
