package plan

import "strconv"

// Bytes is a byte string as the kernel knows it: a path, an argument, an environment entry.
// It need not be UTF-8. In JSON every byte that is not part of valid UTF-8 is written as the lone
// surrogate \udc80..\udcff (PEP 383), and everything outside printable ASCII is escaped, so that
// two different byte strings never share a spelling and no spelling moves a terminal's cursor.
type Bytes string

// Quote shows b to a person: printable ASCII as it is, the rest escaped, quoted only when needed.
func (b Bytes) Quote() string {
	for i := 0; i < len(b); i++ {
		if c := b[i]; c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '\'' {
			return strconv.QuoteToASCII(string(b))
		}
	}
	if b == "" {
		return `""`
	}
	return string(b)
}
