// Package quoting writes text that comes from programs, files and people so that it can be shown or typed: it never
// decides, and prints nothing. Whoever says something to a person calls it.
package quoting

import (
	"strconv"
	"strings"

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
