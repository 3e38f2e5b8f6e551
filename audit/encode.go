package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString writes s as pure ASCII JSON. A byte that is not UTF-8 becomes \udcNN (a lone low surrogate,
// which no valid text produces), so two different paths never become one entry and terminals see no control.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c < 0x20 || c == 0x7f:
				dst = appendU(dst, uint16(c))
			default:
				dst = append(dst, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = appendU(dst, 0xdc00|uint16(c))
		case r > 0xffff:
			r -= 0x10000
			dst = appendU(dst, 0xd800|uint16(r>>10))
			dst = appendU(dst, 0xdc00|uint16(r&0x3ff))
		default:
			dst = appendU(dst, uint16(r))
		}
		i += n
	}
	return append(dst, '"')
}

func appendU(dst []byte, u uint16) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

// appendBody writes the record up to, and without, its hash and closing brace.
func appendBody(dst []byte, e *Event) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, `,"time":"`...)
	dst = e.Time.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","session":`...)
	dst = appendString(dst, e.Session)
	dst = append(dst, `,"kind":`...)
	dst = appendString(dst, e.Kind)
	for _, f := range fields(e) {
		if f.empty() {
			continue
		}
		dst = append(dst, ',', '"')
		dst = append(dst, f.name...)
		dst = append(dst, '"', ':')
		switch {
		case f.str != nil:
			dst = appendString(dst, *f.str)
		case f.num != nil:
			dst = strconv.AppendInt(dst, int64(*f.num), 10)
		case f.n64 != nil:
			dst = strconv.AppendInt(dst, *f.n64, 10)
		}
	}
	if len(e.Detail) > 0 {
		dst = append(dst, `,"detail":{`...)
		for i, kv := range e.Detail {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, kv.K)
			dst = append(dst, ':')
			dst = appendString(dst, kv.V)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `,"prev":`...)
	return appendString(dst, e.Prev)
}

// AppendLine writes e as its one canonical line, newline included, with e.Hash as it stands.
func AppendLine(dst []byte, e *Event) []byte {
	dst = appendBody(dst, e)
	dst = append(dst, `,"hash":`...)
	dst = appendString(dst, e.Hash)
	return append(dst, '}', '\n')
}

// sum is the link of the chain: the previous hash, then the line as it would read without its own.
func sum(prev string, body []byte) string {
	h := sha256.New()
	h.Write([]byte(prev))
	h.Write(body)
	h.Write([]byte{'}'})
	var buf [sha256.Size]byte
	return hex.EncodeToString(h.Sum(buf[:0]))
}

// seal fills Hash and returns the finished line.
func (e *Event) seal(dst []byte) []byte {
	start := len(dst)
	dst = appendBody(dst, e)
	e.Hash = sum(e.Prev, dst[start:])
	dst = append(dst, `,"hash":`...)
	dst = appendString(dst, e.Hash)
	return append(dst, '}', '\n')
}

// clip keeps a hostile value from filling the disk, and says by hash what was cut.
func clip(s string) string {
	if len(s) <= maxField {
		return s
	}
	const keep = maxField - 100
	h := sha256.Sum256([]byte(s[keep:]))
	return fmt.Sprintf("%s[+%d bytes, sha256 %x]", s[:keep], len(s)-keep, h)
}

func (e *Event) clip() {
	for _, f := range fields(e) {
		if f.str != nil {
			*f.str = clip(*f.str)
		}
	}
	if len(e.Detail) == 0 {
		return
	}
	d := make([]KV, len(e.Detail))
	for i, kv := range e.Detail {
		d[i] = KV{clip(kv.K), clip(kv.V)}
	}
	e.Detail = d
}
