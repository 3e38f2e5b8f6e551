package guard

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// entry is one setting of a git configuration, as git's own reader hands it to the rest of git.
type entry struct {
	key   string // section.name or section.subsection.name; only the subsection keeps its case
	value string
	bare  bool // without "=": true where git expects a truth, an error elsewhere
}

// parts splits the key as git does: at its first and its last dot.
func (s entry) parts() (section, sub, name string) {
	first, last := strings.IndexByte(s.key, '.'), strings.LastIndexByte(s.key, '.')
	if first < last {
		sub = s.key[first+1 : last]
	}
	return s.key[:first], sub, s.key[last+1:]
}

// parsed is a configuration that was understood.
type parsed struct {
	settings []entry
	// odd are the places that another version of git, or another program that reads the file, may take for
	// something else: as they stand in the file, each after its section.
	odd      []string
	comments []string // as they stand in the file, each up to the end of its line
}

var errSyntax = errors.New("git does not read it")

// parse reads a configuration the way git's config.c does, character by character. It refuses what git
// refuses, and what git accepts but never writes: NUL bytes, at which git's strings end, and entries
// outside of any section.
func parse(text []byte) (parsed, error) {
	p := parser{text: text, line: 1, header: -1}
	if bytes.IndexByte(text, 0) >= 0 {
		return parsed{}, errors.New("it holds a NUL byte")
	}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		p.pos = len("\ufeff")
		p.strange(0)
	}
	for !p.eof {
		if err := p.item(); err != nil {
			return parsed{}, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	return p.out, nil
}

// parser is what git's struct config_source is.
type parser struct {
	text    []byte
	pos     int
	line    int
	eof     bool
	section string // as keys begin: with its dot
	header  int    // where the first header of this line is; -1: there is none
	odd     bool   // the value that is being read may be read otherwise
	out     parsed
}

// next is git's get_next_char: CR LF is one end of line, and the end of the file is one, too.
func (p *parser) next() byte {
	if p.pos >= len(p.text) {
		p.eof = true
		return '\n'
	}
	c := p.text[p.pos]
	p.pos++
	if c == '\r' && p.pos < len(p.text) && p.text[p.pos] == '\n' {
		p.pos++
		c = '\n'
	}
	if c == '\n' {
		p.line++
	}
	return c
}

// strange notes what was read since at as odd.
func (p *parser) strange(at int) {
	raw := strings.TrimSuffix(string(p.text[at:p.pos]), "\n")
	p.out.odd = append(p.out.odd, p.section+raw)
}

// item is one turn of git_parse_source.
func (p *parser) item() error {
	at := p.pos
	switch c := p.next(); {
	case c == '\n':
		p.header = -1
	case c == '\r':
		p.strange(at)
	case c == ' ' || c == '\t':
	case c == '#' || c == ';':
		p.comment(at)
	case c == '[':
		return p.heading(at)
	case isAlpha(c) && p.section != "":
		return p.entry(c, at)
	default:
		return errSyntax
	}
	return nil
}

// comment ends with its line, also after a backslash; not everybody agrees with git on that.
func (p *parser) comment(at int) {
	p.restOf(at)
	if p.ambiguous(at) {
		p.strange(at)
	}
	p.header = -1
}

// restOf reads the rest of a comment that began at a place.
func (p *parser) restOf(at int) {
	for p.next() != '\n' {
	}
	p.out.comments = append(p.out.comments, strings.TrimRight(string(p.text[at:p.pos]), "\r\n"))
}

// ambiguous: there are other ends of lines than LF since at, or a backslash before one.
func (p *parser) ambiguous(at int) bool {
	raw := p.text[at:p.pos]
	return bytes.IndexByte(raw, '\r') >= 0 || bytes.HasSuffix(bytes.TrimRight(raw, " \t\n"), []byte(`\`))
}

// heading reads a section's header. Two on one line are odd.
func (p *parser) heading(at int) error {
	if err := p.base(at); err != nil {
		return err
	}
	if p.header >= 0 {
		p.strange(p.header)
	}
	p.header = at
	return nil
}

// base is get_base_var. A dot in a name without quotes is an old way to write a subsection.
func (p *parser) base(at int) error {
	var name []byte
	for {
		c := p.next()
		switch {
		case p.eof:
			return errSyntax
		case c == ']' || isSpace(c):
			if len(name) == 0 || name[0] == '.' || name[len(name)-1] == '.' {
				return errSyntax // git reads it; no key that it knows is there
			}
			p.section = string(name) + "."
			if c == ']' {
				if bytes.IndexByte(name, '.') >= 0 {
					p.strange(at)
				}
				return nil
			}
			return p.extended(c)
		case !isKey(c) && c != '.':
			return errSyntax
		}
		name = append(name, lower(c))
	}
}

// extended is get_extended_base_var: [section "subsection"].
func (p *parser) extended(c byte) error {
	for isSpace(c) {
		if c == '\n' {
			return errSyntax
		}
		c = p.next()
	}
	if c != '"' {
		return errSyntax
	}
	var sub []byte
	for {
		if c = p.next(); c == '"' {
			break
		}
		if c == '\\' {
			c = p.next()
		}
		if c == '\n' {
			return errSyntax
		}
		sub = append(sub, c)
	}
	if p.next() != ']' {
		return errSyntax
	}
	p.section += string(sub) + "."
	return nil
}

// entry is get_value.
func (p *parser) entry(c byte, at int) error {
	name := []byte{lower(c)}
	for c = p.next(); !p.eof && isKey(c); c = p.next() {
		name = append(name, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	s := entry{key: p.section + string(name), bare: c == '\n'}
	p.odd = p.header >= 0 // on the line of its header
	if !s.bare {
		if c != '=' {
			return errSyntax
		}
		value, err := p.value()
		if err != nil {
			return err
		}
		s.value = value
	}
	if p.odd || p.ambiguous(at) {
		p.strange(at)
	}
	p.header = -1
	p.out.settings = append(p.out.settings, s)
	return nil
}

// value is parse_value. White space within an unquoted value is kept by newer versions of git; older ones
// made spaces of it, as it is done here.
func (p *parser) value() (string, error) {
	var out []byte
	quoted, closed, blanks, other := false, false, 0, false
	for {
		c := p.next()
		switch {
		case c == '\n' && quoted:
			return "", errSyntax
		case c == '\n':
			return string(out), nil
		case !quoted && isSpace(c):
			if len(out) > 0 {
				blanks++
				other = other || c != ' '
			}
			continue
		case !quoted && (c == ';' || c == '#'):
			p.restOf(p.pos - 1)
			return string(out), nil
		}
		out = append(out, strings.Repeat(" ", blanks)...)
		p.odd = p.odd || blanks > 0 && other || closed || !quoted && c == '"' && len(out) > 0
		blanks, other, closed = 0, false, quoted && c == '"' // after its closing quote a value should end
		switch c {
		case '"':
			quoted = !quoted
		case '\\':
			b, err := p.escaped()
			if err != nil {
				return "", err
			}
			out = append(out, b...)
		default:
			out = append(out, c)
		}
	}
}

// escaped is what a backslash and the next character stand for; at the end of a line they are nothing.
func (p *parser) escaped() (string, error) {
	switch c := p.next(); c {
	case '\n':
		p.odd = true
		return "", nil
	case 't':
		return "\t", nil
	case 'b':
		return "\b", nil
	case 'n':
		return "\n", nil
	case '\\', '"':
		return string(c), nil
	}
	return "", errSyntax
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isAlpha(c byte) bool { return lower(c) >= 'a' && lower(c) <= 'z' }

func isKey(c byte) bool { return isAlpha(c) || c >= '0' && c <= '9' || c == '-' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
