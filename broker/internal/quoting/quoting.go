// Package quoting writes text that comes from programs, files and people so that it can be shown or typed: it never
// decides, and prints nothing. Whoever says something to a person calls it.
package quoting

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"sbx.example/sbx/broker/plan"
)

// Quote shows text as it is when it is plain, else in double quotes.
func Quote(s string) string { return plan.Bytes(s).Quote() }

// ASCII shows text of a file or program: as it is when it is plain, else quoted.
func ASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return strings.Trim(strconv.QuoteToASCII(s), `"`)
		}
	}
	return s
}

// Lines shows text in which something may stand that nobody has quoted: printable ASCII and the ends of lines as they
// are, and the rest as Quote writes it.
func Lines(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n', r == '\t', r >= 0x20 && r < 0x7f, r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
			b.WriteString(s[i : i+n])
		default:
			b.WriteString(strings.Trim(strconv.QuoteToASCII(s[i:i+n]), `"`))
		}
		i += n
	}
	return b.String()
}

// All quotes each of a list.
func All(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Quote(s)
	}
	return out
}

// Count is a number of things, with the word for one.
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
