package tomlscan

import (
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Limits that keep a hostile file cheap. They are checked on the bytes, before the TOML library builds anything.
const (
	maxDepth  = 8     // nested arrays and inline tables
	maxStmts  = 50000 // lines that say something; a rule has about five
	maxElems  = 20000 // array elements and inline pairs
	maxDots   = 8     // parts of a key
	maxKey    = 256   // bytes of a key
	maxScalar = 64    // bytes of a number, date or word
	maxString = 16384 // bytes of one string
	// maxEscaped bounds the keys that the library must decode twice; nobody needs one.
	maxEscaped = 100
)

// Stmt is one header or assignment, with where it stands in the text.
type Stmt struct {
	Key       string // full dotted name
	Line      int
	EndLine   int
	Header    bool
	Array     bool  // [[key]]
	ElemLines []int // Line of every element of an Array value, first level
}

// Parts are where the parts of an assignment stand: the elements of a list, first level, and the comments in its lines,
// within the value and behind it.
type Parts struct{ Elems, Comments []Span }

// Span is a part of the text: offsets of bytes.
type Span struct{ From, To int }

// scanner finds statements and their lines. It is not a TOML parser: on a valid file it agrees with the library
// about what starts where, on an invalid one the library gives the error.
type scanner struct {
	b     []byte
	i     int
	line  int
	elems int
	depth int
	// escaped counts quoted keys with a backslash.
	escaped int
	table   string
	out     []Stmt
	parts   *Parts // of this statement, where they are wanted
}

// Error says which line is wrong.
type Error struct {
	Line int
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

func (s *scanner) fail(format string, a ...any) error {
	return &Error{s.line, fmt.Sprintf(format, a...)}
}

// Scan indexes a file and enforces the limits.
func Scan(data []byte) ([]Stmt, error) {
	s := &scanner{b: data, line: 1}
	err := s.all(nil)
	return s.out, err
}

// Find is the last assignment to a key, with its parts; nil: there is none.
func Find(data []byte, key string) (at *Stmt, parts Parts, err error) {
	s := &scanner{b: data, line: 1, parts: &Parts{}}
	err = s.all(func() {
		if st := s.out[len(s.out)-1]; st.Key == key && !st.Header {
			at, parts = &st, *s.parts
		}
	})
	return at, parts, err
}

// all reads every statement; each is called behind one.
func (s *scanner) all(each func()) error {
	for {
		s.blank(true)
		if s.i >= len(s.b) {
			return nil
		}
		if len(s.out) >= maxStmts {
			return s.fail("more than %d statements", maxStmts)
		}
		if s.parts != nil {
			*s.parts = Parts{}
		}
		var err error
		if s.b[s.i] == '[' {
			err = s.head()
		} else {
			err = s.assignment()
		}
		if err != nil {
			return err
		}
		s.blank(false)
		if s.i < len(s.b) && s.b[s.i] != '\n' {
			return s.fail("unexpected text after the value")
		}
		if each != nil {
			each()
		}
	}
}

// blank skips spaces and comments, and line ends if lines is set.
func (s *scanner) blank(lines bool) {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.i++
		case c == '\n' && lines:
			s.i++
			s.line++
		case c == '#':
			from := s.i
			for s.i < len(s.b) && s.b[s.i] != '\n' {
				s.i++
			}
			if s.parts != nil {
				s.parts.Comments = append(s.parts.Comments, Span{from, s.i})
			}
		default:
			return
		}
	}
}

func (s *scanner) head() error {
	st := Stmt{Line: s.line, EndLine: s.line, Header: true}
	s.i++
	if s.i < len(s.b) && s.b[s.i] == '[' {
		st.Array = true
		s.i++
	}
	key, err := s.key(']')
	if err != nil {
		return err
	}
	s.i++
	if st.Array {
		if s.i >= len(s.b) || s.b[s.i] != ']' {
			return s.fail("expected ]] after %s", excerpt.Quote(key))
		}
		s.i++
	}
	st.Key, s.table = key, key
	s.out = append(s.out, st)
	return nil
}

func (s *scanner) assignment() error {
	st := Stmt{Line: s.line}
	key, err := s.key('=')
	if err != nil {
		return err
	}
	s.i++
	st.Key = key
	if s.table != "" {
		st.Key = s.table + "." + key
	}
	if err := s.value(&st); err != nil {
		return err
	}
	st.EndLine = s.line
	s.out = append(s.out, st)
	return nil
}

// key reads up to, not over, end. Quoted parts are decoded; a part with a dot in it keeps its quotes so that it
// cannot pass for two.
func (s *scanner) key(end byte) (string, error) {
	var parts []string
	start := s.i
	for {
		s.blank(false)
		if s.i >= len(s.b) || s.i-start > maxKey {
			return "", s.fail("a key is not ended or longer than %d bytes", maxKey)
		}
		var part string
		switch c := s.b[s.i]; {
		case c == '"' || c == '\'':
			from := s.i
			if err := s.str(); err != nil {
				return "", err
			}
			if part = string(s.b[from:s.i]); strings.Contains(part, "\\") {
				if s.escaped++; s.escaped > maxEscaped {
					return "", s.fail("more than %d keys with escapes", maxEscaped)
				}
			}
			part = unquoteKey(part)
		default:
			from := s.i
			for s.i < len(s.b) && strings.IndexByte(" \t\r\n.=]#[{}\"'", s.b[s.i]) < 0 {
				s.i++
			}
			part = string(s.b[from:s.i])
		}
		if part == "" {
			return "", s.fail("expected a key")
		}
		parts = append(parts, part)
		if len(parts) > maxDots {
			return "", s.fail("a key has more than %d parts", maxDots)
		}
		s.blank(false)
		if s.i >= len(s.b) || s.b[s.i] != '.' && s.b[s.i] != end {
			return "", s.fail("expected %q after key %s", end, excerpt.Quote(part))
		}
		if s.b[s.i] == end {
			return strings.Join(parts, "."), nil
		}
		s.i++
	}
}

// unquoteKey leaves the decoding of escapes to the library that reads the key anyway.
func unquoteKey(q string) string {
	if len(q) < 2 || strings.Contains(q, ".") {
		return q
	}
	if !strings.Contains(q, "\\") {
		return q[1 : len(q)-1]
	}
	var m map[string]any
	if _, err := toml.Decode(q+"=1", &m); err != nil {
		return q
	}
	for k := range m {
		if strings.Contains(k, ".") {
			return q
		}
		return k
	}
	return q
}

// value skips one value and notes where the elements of an array start.
func (s *scanner) value(st *Stmt) error {
	s.blank(false)
	if s.i >= len(s.b) || s.b[s.i] == '\n' {
		return s.fail("key %s has no value", excerpt.Quote(st.Key))
	}
	switch s.b[s.i] {
	case '"', '\'':
		return s.str()
	case '[', '{':
		return s.nested(st)
	}
	return s.scalar()
}

func (s *scanner) scalar() error {
	from := s.i
	for s.i < len(s.b) && strings.IndexByte("\n,]}#=", s.b[s.i]) < 0 {
		s.i++
		if s.i-from > maxScalar {
			return s.fail("a value is longer than %d bytes; is a quote missing?", maxScalar)
		}
	}
	if s.i == from {
		return s.fail("expected a value")
	}
	return nil
}

// nested is recursive only as deep as maxDepth allows.
func (s *scanner) nested(st *Stmt) error {
	open := s.b[s.i]
	closing := byte(']')
	if open == '{' {
		closing = '}'
	}
	if s.depth++; s.depth > maxDepth {
		return s.fail("nested more than %d levels", maxDepth)
	}
	s.i++
	for {
		s.blank(true)
		if s.i >= len(s.b) {
			return s.fail("a list or table is not closed")
		}
		if c := s.b[s.i]; c == closing {
			s.i++
			s.depth--
			return nil
		} else if c == ',' {
			s.i++
			continue
		}
		if s.elems++; s.elems > maxElems {
			return s.fail("more than %d list elements", maxElems)
		}
		element, from := open == '[' && s.depth == 1, s.i
		if element {
			st.ElemLines = append(st.ElemLines, s.line)
		}
		if open == '{' {
			if _, err := s.key('='); err != nil {
				return err
			}
			s.i++
		}
		if err := s.value(st); err != nil {
			return err
		}
		if element && s.parts != nil {
			s.parts.Elems = append(s.parts.Elems, Span{from, s.i})
		}
	}
}

// str skips a string of any of the four kinds.
func (s *scanner) str() error {
	q := s.b[s.i]
	triple := s.i+2 < len(s.b) && s.b[s.i+1] == q && s.b[s.i+2] == q
	from := s.i
	s.i++
	if triple {
		s.i += 2
	}
	for ; s.i < len(s.b); s.i++ {
		if s.i-from > maxString {
			return s.fail("a string is longer than %d bytes", maxString)
		}
		switch c := s.b[s.i]; {
		case c == '\\' && q == '"' && s.i+1 < len(s.b) && s.b[s.i+1] != '\n':
			s.i++
		case c == '\n':
			if !triple {
				return s.fail("a string is not ended on its line")
			}
			s.line++
		case c == q && !triple:
			s.i++
			return nil
		case c == q && s.i+2 < len(s.b) && s.b[s.i+1] == q && s.b[s.i+2] == q:
			s.i += 3
			// Up to two quotes may stand directly before the closing three.
			for n := 0; n < 2 && s.i < len(s.b) && s.b[s.i] == q; n++ {
				s.i++
			}
			return nil
		}
	}
	return s.fail("a string is not ended")
}
