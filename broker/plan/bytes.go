package plan

import "strconv"

// Bytes is a byte string as the kernel knows it: a path, an argument, an environment entry.
// It need not be UTF-8. In JSON every byte that is not part of valid UTF-8 is written as the lone
// surrogate \udc80..\udcff (PEP 383), and everything outside printable ASCII is escaped, so that
// two different byte strings never share a spelling and no spelling moves a terminal's cursor.
type Bytes string

// BytesOf are words as they stand in a Plan and in JSON.
func BytesOf(words []string) []Bytes {
	out := make([]Bytes, len(words))
	for i, w := range words {
		out[i] = Bytes(w)
	}
	return out
}

// StringsOf are such words for the kernel.
func StringsOf(words []Bytes) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// Quote shows b to a person, see Quote.
func (b Bytes) Quote() string { return Quote(string(b)) }

// Quote shows s to a person: printable ASCII as it is, the rest escaped, quoted only when needed.
func Quote(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '\'' {
			return strconv.QuoteToASCII(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}
