package audit

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// DecodeLine accepts exactly the bytes AppendLine would write for the same event, without the newline.
// One spelling only: duplicate, unknown, reordered or differently escaped members are all refused.
func DecodeLine(line []byte) (Event, error) {
	p := parser{b: line}
	var e Event
	p.event(&e)
	if p.err == nil && len(p.b) != 0 {
		p.fail("trailing data")
	}
	if p.err != nil {
		return Event{}, fmt.Errorf("decoding record: %w", p.err)
	}
	if err := e.check(); err != nil {
		return Event{}, fmt.Errorf("decoding record: %w", err)
	}
	if got := AppendLine(nil, &e); !bytes.Equal(got[:len(got)-1], line) {
		return Event{}, errors.New("decoding record: not in canonical form")
	}
	return e, nil
}

type parser struct {
	b   []byte
	err error
}

func (p *parser) fail(s string) {
	if p.err == nil {
		p.err = errors.New(s)
	}
	p.b = nil
}

func (p *parser) lit(s string) {
	if len(p.b) < len(s) || string(p.b[:len(s)]) != s {
		p.fail("expected " + s)
		return
	}
	p.b = p.b[len(s):]
}

func (p *parser) peek(s string) bool { return bytes.HasPrefix(p.b, []byte(s)) }

func (p *parser) event(e *Event) {
	p.lit(`{"seq":`)
	e.Seq, _ = strconv.ParseUint(p.number(), 10, 64)
	p.lit(`,"time":`)
	t, err := time.Parse(time.RFC3339Nano, p.str())
	if err != nil {
		p.fail("bad time")
	}
	e.Time = t.UTC()
	p.lit(`,"session":`)
	e.Session = p.str()
	p.lit(`,"kind":`)
	e.Kind = p.str()
	for _, f := range fields(e) {
		key := `,"` + f.name + `":`
		if !p.peek(key) {
			continue
		}
		p.lit(key)
		switch {
		case f.str != nil:
			*f.str = p.str()
		case f.num != nil:
			*f.num, _ = strconv.Atoi(p.number())
		case f.n64 != nil:
			*f.n64, _ = strconv.ParseInt(p.number(), 10, 64)
		default:
			e.Detail = p.detail()
		}
	}
	p.lit(`,"prev":`)
	e.Prev = p.str()
	p.lit(`,"hash":`)
	e.Hash = p.str()
	p.lit(`}`)
}

// number only delimits; a value out of range is caught when the line is written back.
func (p *parser) number() string {
	n := 0
	for n < len(p.b) && n < 21 && (p.b[n] == '-' || p.b[n] >= '0' && p.b[n] <= '9') {
		n++
	}
	if n == 0 {
		p.fail("expected a number")
		return "0"
	}
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}

func (p *parser) detail() []KV {
	var out []KV
	p.lit("{")
	for p.err == nil && len(out) < 1024 {
		k := p.str()
		p.lit(":")
		out = append(out, KV{k, p.str()})
		if !p.peek(",") {
			break
		}
		p.lit(",")
	}
	p.lit("}")
	return out
}

func (p *parser) str() string {
	p.lit(`"`)
	var out []byte
	for p.err == nil {
		if len(p.b) == 0 {
			p.fail("unterminated string")
			break
		}
		c := p.b[0]
		p.b = p.b[1:]
		switch {
		case c == '"':
			return string(out)
		case c == '\\':
			out = p.escape(out)
		case c < 0x20 || c >= 0x7f:
			p.fail("raw byte outside printable ASCII in a string")
		default:
			out = append(out, c)
		}
	}
	return ""
}

func (p *parser) escape(out []byte) []byte {
	if len(p.b) > 0 && (p.b[0] == '"' || p.b[0] == '\\') {
		out = append(out, p.b[0])
		p.b = p.b[1:]
		return out
	}
	u := p.hex4()
	switch {
	case u >= 0xdc80 && u <= 0xdcff:
		return append(out, byte(u))
	case u >= 0xd800 && u < 0xdc00:
		p.lit(`\`)
		lo := p.hex4()
		if lo < 0xdc00 || lo > 0xdfff {
			p.fail("lone high surrogate")
			return out
		}
		return utf8.AppendRune(out, 0x10000+(rune(u)-0xd800)<<10+rune(lo)-0xdc00)
	case u >= 0xdc00 && u <= 0xdfff:
		p.fail("lone low surrogate")
		return out
	}
	return utf8.AppendRune(out, rune(u))
}

func (p *parser) hex4() uint16 {
	if len(p.b) < 5 || p.b[0] != 'u' {
		p.fail("bad escape")
		return 0
	}
	u, err := strconv.ParseUint(string(p.b[1:5]), 16, 16)
	if err != nil {
		p.fail("bad escape")
		return 0
	}
	p.b = p.b[5:]
	return uint16(u)
}
