package seatbelt

import (
	"fmt"
	"regexp"
	"strings"
)

// Profile is a text of the language, as far as it is written here, in the order of its rules.
type Profile struct{ rules []ruled }

// ruled is (allow|deny OPERATION... FILTER...): it holds where one of the filters does, and always without any.
type ruled struct {
	allow      bool
	operations []string
	filters    []expr
}

// expr is an atom or a list.
type expr struct {
	atom string
	kind kind
	list []expr
	is   *regexp.Regexp // of a pattern in a rule
}

type kind uint8

const (
	list kind = iota
	symbol
	text    // "..."
	pattern // #"..."
)

// Bounds of what is read.
const (
	maxText  = 4 << 20
	maxDepth = 16
)

// Parse reads a profile and refuses what is not the language's, or not of the part that is written here: a word that
// sandbox-exec does not know makes it refuse the whole.
func Parse(s string) (*Profile, error) {
	if len(s) > maxText {
		return nil, fmt.Errorf("a profile of %d bytes", len(s))
	}
	r := reader{s: s, line: 1}
	var forms []expr
	for {
		r.space()
		if r.s == "" {
			break
		}
		e, err := r.expr(0)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		forms = append(forms, e)
	}
	p := &Profile{}
	for i, f := range forms {
		if err := p.form(i, f); err != nil {
			return nil, fmt.Errorf("form %d: %w", i+1, err)
		}
	}
	if len(forms) < 2 {
		return nil, fmt.Errorf("a profile begins with (version 1) and (deny default)")
	}
	return p, nil
}

// form takes one form of the outermost level. The first two say which language it is, and what is not said.
func (p *Profile) form(i int, f expr) error {
	switch i {
	case 0:
		if f.String() != "(version 1)" {
			return fmt.Errorf("%s is not (version 1)", f)
		}
		return nil
	case 1:
		if f.String() != "(deny default)" {
			return fmt.Errorf("%s is not (deny default)", f)
		}
		return nil
	}
	if f.kind != list || len(f.list) < 2 || f.list[0].kind != symbol {
		return fmt.Errorf("%s is no rule", f)
	}
	out := ruled{allow: f.list[0].atom == "allow"}
	if !out.allow && f.list[0].atom != "deny" {
		return fmt.Errorf("%s is neither allow nor deny", f.list[0])
	}
	rest := f.list[1:]
	for len(rest) > 0 && rest[0].kind == symbol {
		if !isOperation(rest[0].atom) {
			return fmt.Errorf("%s is no operation", rest[0])
		}
		out.operations, rest = append(out.operations, rest[0].atom), rest[1:]
	}
	if len(out.operations) == 0 {
		return fmt.Errorf("%s has no operation", f)
	}
	for i := range rest {
		if err := checkFilter(&rest[i]); err != nil {
			return err
		}
	}
	out.filters = rest
	p.rules = append(p.rules, out)
	return nil
}

// reader reads the text from its beginning.
type reader struct {
	s    string
	line int
}

func (r *reader) take(n int) string {
	s := r.s[:n]
	r.s, r.line = r.s[n:], r.line+strings.Count(s, "\n")
	return s
}

func (r *reader) space() {
	for {
		r.take(len(r.s) - len(strings.TrimLeft(r.s, " \t\n")))
		if !strings.HasPrefix(r.s, ";") {
			return
		}
		line, _, _ := strings.Cut(r.s, "\n")
		r.take(len(line))
	}
}

func (r *reader) expr(depth int) (expr, error) {
	switch {
	case depth > maxDepth:
		return expr{}, fmt.Errorf("nested too deeply")
	case strings.HasPrefix(r.s, "("):
		return r.list(depth)
	case strings.HasPrefix(r.s, `#"`):
		r.take(2)
		end := strings.IndexByte(r.s, '"')
		if end < 0 {
			return expr{}, fmt.Errorf("an expression without an end")
		}
		e := expr{kind: pattern, atom: r.take(end)}
		r.take(1)
		return e, nil
	case strings.HasPrefix(r.s, `"`):
		return r.text()
	}
	n := strings.IndexAny(r.s, " \t\n()\";#")
	if n < 0 {
		n = len(r.s)
	}
	if n == 0 {
		return expr{}, fmt.Errorf("%.1q where a word is expected", r.s)
	}
	return expr{kind: symbol, atom: r.take(n)}, nil
}

func (r *reader) list(depth int) (expr, error) {
	r.take(1)
	e := expr{kind: list}
	for {
		r.space()
		if r.s == "" {
			return e, fmt.Errorf("a list without an end")
		}
		if r.s[0] == ')' {
			r.take(1)
			return e, nil
		}
		x, err := r.expr(depth + 1)
		if err != nil {
			return e, err
		}
		e.list = append(e.list, x)
	}
}

func (r *reader) text() (expr, error) {
	var b strings.Builder
	for i := 1; i < len(r.s); i++ {
		switch c := r.s[i]; {
		case c == '"':
			r.take(i + 1)
			return expr{kind: text, atom: b.String()}, nil
		case c == '\\' && i+1 < len(r.s) && (r.s[i+1] == '\\' || r.s[i+1] == '"'):
			i++
			b.WriteByte(r.s[i])
		case c == '\\':
			return expr{}, fmt.Errorf("%.2q is no escape", r.s[i:])
		default:
			b.WriteByte(c)
		}
	}
	return expr{}, fmt.Errorf("a string without an end")
}

// String is the expression in the language.
func (e expr) String() string {
	switch e.kind {
	case text:
		return quoted(e.atom)
	case pattern:
		return raw(e.atom)
	case list:
		words := make([]string, len(e.list))
		for i, x := range e.list {
			words[i] = x.String()
		}
		return "(" + strings.Join(words, " ") + ")"
	}
	return e.atom
}
