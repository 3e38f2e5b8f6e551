package pathname

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// String writes the pattern so that ParsePattern reads the same one back without any variable.
func (p Pattern) String() string {
	var b strings.Builder
	if p.abstract {
		b.WriteByte('@')
	} else if len(p.comps) == 0 {
		return "/"
	}
	for _, c := range p.comps {
		if !p.abstract {
			b.WriteByte('/')
		}
		if c.kind == compTree {
			b.WriteString("**")
			continue
		}
		for i, part := range c.parts {
			if i > 0 {
				b.WriteByte('*')
			}
			escape(&b, part)
		}
	}
	return b.String()
}

// Escape writes a path as a pattern that matches exactly it.
func Escape(path string) string {
	var b strings.Builder
	escape(&b, path)
	return b.String()
}

// EscapePath writes a path so that Vars.Path reads exactly it: there a ? at the end would mark it as optional.
func EscapePath(path string) string {
	s := Escape(path)
	if name, ok := strings.CutSuffix(s, "?"); ok {
		s = name + `\x3f`
	}
	return s
}

// escape keeps what a human can read as it is; bytes that are not text, or that would act on a terminal, become \xHH.
func escape(b *strings.Builder, s string) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\' || r == '*':
			b.WriteByte('\\')
			b.WriteByte(s[i])
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r):
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(b, `\x%02x`, c)
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
}
