// Package arguments is what a tool of the settings may be called with: patterns of words, checked and matched. It must
// never read anything. policy calls it.
package arguments

import (
	"fmt"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Check says what is wrong with a pattern of arguments: words with a space between, one for each argument. A *
// stands for any text, ** as the last word for any number of arguments, and no word at all for a call without any. No
// wildcard at the beginning of a word stands for the hyphen of an option, so options are allowed by their names alone.
func Check(s string) error {
	if s == "" {
		return nil
	}
	words := strings.Split(s, " ")
	for i, w := range words {
		switch {
		case w == "" || strings.IndexByte(w, 0) >= 0:
			return fmt.Errorf("%s is not words with a space between", excerpt.Quote(s))
		case strings.Contains(w, "**") && (w != "**" || i != len(words)-1):
			return fmt.Errorf("%s: ** is a whole word, and the last", excerpt.Quote(s))
		}
	}
	return nil
}

// Match says whether a pattern stands for the arguments of a call.
func Match(pattern string, args []string) bool {
	if pattern == "" {
		return len(args) == 0
	}
	words := strings.Split(pattern, " ")
	if last := len(words) - 1; words[last] == "**" {
		if words = words[:last]; len(args) < last {
			return false
		}
		for range args[last:] {
			words = append(words, "*")
		}
	}
	return slices.EqualFunc(words, args, matchWord)
}

// matchWord says whether an argument is what one word of a pattern stands for.
func matchWord(word, arg string) bool {
	parts := strings.Split(word, "*")
	if word == "*" && arg == "" || parts[0] == "" && strings.HasPrefix(arg, "-") {
		return false
	}
	rest, ok := strings.CutPrefix(arg, parts[0])
	if len(parts) == 1 || !ok {
		return ok && rest == ""
	}
	for _, p := range parts[1 : len(parts)-1] {
		if _, rest, ok = strings.Cut(rest, p); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
