package plan

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"
)

// Bytes is a byte string as the kernel knows it: a path, an argument, an environment entry.
// It need not be UTF-8. In JSON every byte that is not part of valid UTF-8 is written as the lone
// surrogate \udc80..\udcff (PEP 383), and everything outside printable ASCII is escaped, so that
// two different byte strings never share a spelling and no spelling moves a terminal's cursor.
type Bytes string

const hexDigits = "0123456789abcdef"

func appendU(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// AppendJSON appends b's one JSON spelling, quotes included.
func (b Bytes) AppendJSON(dst []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(b); {
		c := b[i]
		if c == '"' || c == '\\' {
			dst = append(dst, '\\', c)
			i++
			continue
		}
		if c >= 0x20 && c < 0x7f {
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(string(b[i:]))
		switch {
		case r == utf8.RuneError && n <= 1:
			dst = appendU(dst, 0xdc00|rune(c))
			i++
			continue
		case r >= 0x10000:
			r -= 0x10000
			dst = appendU(appendU(dst, 0xd800|r>>10), 0xdc00|r&0x3ff)
		default:
			dst = appendU(dst, r)
		}
		i += n
	}
	return append(dst, '"')
}

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) { return b.AppendJSON(nil), nil }

var errString = errors.New("not a JSON string")

// UnmarshalJSON implements json.Unmarshaler; it inverts AppendJSON and also reads ordinary JSON strings.
func (b *Bytes) UnmarshalJSON(in []byte) error {
	if bytes.Equal(in, []byte("null")) {
		return errString
	}
	if len(in) < 2 || in[0] != '"' || in[len(in)-1] != '"' {
		return errString
	}
	in = in[1 : len(in)-1]
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); {
		if in[i] != '\\' {
			out = append(out, in[i])
			i++
			continue
		}
		var err error
		if out, i, err = unescape(out, in, i); err != nil {
			return err
		}
	}
	*b = Bytes(out)
	return nil
}

func unescape(out, in []byte, i int) ([]byte, int, error) {
	if i+1 >= len(in) {
		return nil, 0, errString
	}
	switch c := in[i+1]; c {
	case '"', '\\', '/':
		return append(out, c), i + 2, nil
	case 'b':
		return append(out, '\b'), i + 2, nil
	case 'f':
		return append(out, '\f'), i + 2, nil
	case 'n':
		return append(out, '\n'), i + 2, nil
	case 'r':
		return append(out, '\r'), i + 2, nil
	case 't':
		return append(out, '\t'), i + 2, nil
	case 'u':
		r, ok := hex4(in, i+2)
		if !ok {
			return nil, 0, errString
		}
		i += 6
		if r >= 0xd800 && r < 0xdc00 && i+1 < len(in) && in[i] == '\\' && in[i+1] == 'u' {
			if lo, ok := hex4(in, i+2); ok && lo >= 0xdc00 && lo < 0xe000 {
				return utf8.AppendRune(out, (r-0xd800)<<10|(lo-0xdc00)+0x10000), i + 6, nil
			}
		}
		if r >= 0xdc80 && r <= 0xdcff {
			return append(out, byte(r)), i, nil
		}
		if r >= 0xd800 && r < 0xe000 {
			return nil, 0, errString
		}
		return utf8.AppendRune(out, r), i, nil
	}
	return nil, 0, errString
}

func hex4(in []byte, i int) (rune, bool) {
	if i+4 > len(in) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(in[i:i+4]), 16, 16)
	return rune(v), err == nil
}

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
