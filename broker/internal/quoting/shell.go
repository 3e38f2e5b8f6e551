package quoting

import (
	"fmt"
	"strings"
)

// Script writes a word so that every POSIX shell takes it literally: for what one is to run. Shell is for people.
func Script(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Shell writes a word so that a shell takes it literally, in printable ASCII.
func Shell(s string) string {
	plain := s != ""
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 || c >= 0x7f {
			return ansiQuote(s)
		}
		plain = plain && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("_-./:@%+,=", c) >= 0)
	}
	if plain {
		return s
	}
	return Script(s)
}

// ansiQuote is the form of bash, zsh and ksh for bytes that no terminal should be sent. Shells that do not have it
// (dash) read a dollar and a text in quotes, where a backslash is none. So no quote stands in it, which would end the
// text there.
func ansiQuote(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '\\' || c == '\'' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

// Place is Shell for the path that --ro, --rw and options like them take: a ? at its end says there that it may be
// missing, and is no part of the name. A name that ends so gets one more.
func Place(path string) string {
	if strings.HasSuffix(path, "?") {
		path += "?"
	}
	return Shell(path)
}
