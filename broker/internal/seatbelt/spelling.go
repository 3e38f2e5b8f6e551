package seatbelt

import (
	"regexp"
	"strings"
	"unicode"

	"sbx.example/sbx/broker/internal/guard"
)

// APFS takes names for equal whose letters are the same in another of Unicode's normal forms: é is one letter, or an e
// with a mark behind it. Rules see the bytes that are stored, and expressions are over bytes. So what is refused has an
// expression for each letter that is spelled in more ways than one, which matches more than that letter.
const (
	anyForm   = "[^/]?[^ -~]+" // a letter that is not ASCII, composed or not
	anyLetter = "[^/][^ -~]*"  // one letter, with the bytes or marks behind its first byte
)

// double is two letters s, for which macOS takes a sharp s.
const double = "([sS][sS]|ß|ẞ)"

// letters takes a text apart: each has the marks behind it, and a syllable of Hangul its parts.
func letters(s string) (out []string) {
	for _, r := range s {
		if n := len(out); n > 0 && out[n-1] != "/" && (unicode.Is(unicode.M, r) || 0x1160 <= r && r <= 0x11ff) {
			out[n-1] += string(r)
		} else {
			out = append(out, string(r))
		}
	}
	return out
}

// folded is a text as an expression, in both letter cases and every normal form.
func folded(s string) string {
	var b strings.Builder
	for _, r := range s { // letters that are folded to others of ASCII
		if f := guard.Fold(string(r)); r >= 0x80 && f != "" && strings.Trim(f, "abcdefghijklmnopqrstuvwxyz") == "" {
			b.WriteString(f)
		} else {
			b.WriteRune(r)
		}
	}
	list := letters(b.String())
	b.Reset()
	for i := 0; i < len(list); i++ {
		if i+1 < len(list) && strings.EqualFold(list[i]+list[i+1], "ss") && len(list[i]+list[i+1]) == 2 {
			b.WriteString(double)
			i++
		} else {
			b.WriteString(bothCases(list[i]))
		}
	}
	return b.String()
}

// bothCases matches a letter in both cases.
func bothCases(s string) string {
	c := s[0]
	switch {
	case len(s) > 1:
		return anyForm
	case 'a' <= c && c <= 'z':
		return "[" + s + string(c-'a'+'A') + "]"
	case 'A' <= c && c <= 'Z':
		return "[" + string(c-'A'+'a') + s + "]"
	case c == '"':
		return "."
	}
	return regexp.QuoteMeta(s)
}

// literally is a path as an expression, in every normal form. What the language's own strings cannot hold matches
// anything.
func literally(p string) string {
	var b strings.Builder
	for _, s := range letters(p) {
		switch {
		case len(s) > 1:
			b.WriteString(anyForm)
		case s == `"` || s[0] < ' ':
			b.WriteString("[^/]")
		default:
			b.WriteString(regexp.QuoteMeta(s))
		}
	}
	return b.String()
}

// refused is a filter for a place that a rule takes something from, in every normal form.
func refused(p string, tree bool) string {
	switch {
	case strings.ContainsFunc(p, func(r rune) bool { return r >= 0x80 }):
		end := "$"
		if tree {
			end = "(/.*)?$"
		}
		return "(regex " + raw("^"+literally(p)+end) + ")"
	case tree:
		return "(subpath " + quoted(p) + ")"
	}
	return "(literal " + quoted(p) + ")"
}
