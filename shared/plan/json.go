package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// ErrSpelling is returned for bytes that describe a plan but are not what Encode would have written.
var ErrSpelling = errors.New("plan is not in canonical form")

// Encode writes p in its one spelling: indented by nothing, fields in the order of the types.
func Encode(p *Plan) ([]byte, error) {
	e := encoder{b: make([]byte, 0, 32<<10), fields: map[reflect.Type][]field{}}
	e.add(reflect.ValueOf(p).Elem())
	b := append(e.b, '\n')
	if len(b) > MaxSize {
		return nil, fmt.Errorf("encoding plan: %d bytes, more than %d", len(b), MaxSize)
	}
	return b, nil
}

// encoder writes what encoding/json would, in a fifth of its time: every run encodes its plan once, so nothing that is prepared for
// later values pays.
type encoder struct {
	b      []byte
	fields map[reflect.Type][]field
}

// field is a name, as it is written, and whether an empty value is left out.
type field struct {
	name string
	omit bool
}

func (e *encoder) add(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		e.addStruct(v)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			e.b = append(e.b, "null"...)
			return
		}
		e.b = append(e.b, '[')
		for i := range v.Len() {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.add(v.Index(i))
		}
		e.b = append(e.b, ']')
	case reflect.Pointer:
		if v.IsNil() {
			e.b = append(e.b, "null"...)
			return
		}
		e.add(v.Elem())
	case reflect.String:
		if v.Type() == reflect.TypeFor[Bytes]() {
			e.b = Bytes(v.String()).AppendJSON(e.b)
			return
		}
		e.addText(v.String())
	case reflect.Bool:
		e.b = strconv.AppendBool(e.b, v.Bool())
	default:
		if v.CanInt() {
			e.b = strconv.AppendInt(e.b, v.Int(), 10)
			return
		}
		e.b = strconv.AppendUint(e.b, v.Uint(), 10)
	}
}

func (e *encoder) addStruct(v reflect.Value) {
	fields, ok := e.fields[v.Type()]
	if !ok {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			fields = append(fields, field{`"` + f.Name + `":`, f.Tag == `json:",omitempty"`})
		}
		e.fields[v.Type()] = fields
	}
	sep := byte('{')
	for i := range fields {
		x := v.Field(i)
		if fields[i].omit && (x.Kind() != reflect.Struct && x.IsZero() || x.Kind() == reflect.Slice && x.Len() == 0) {
			continue
		}
		e.b = append(append(e.b, sep), fields[i].name...)
		sep = ','
		e.add(x)
	}
	if sep == '{' {
		e.b = append(e.b, sep)
	}
	e.b = append(e.b, '}')
}

// addText writes a string of this program's own; those of others are Bytes.
func (e *encoder) addText(s string) {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			e.b = append(e.b, slow(s)...)
			return
		}
	}
	e.b = append(append(append(e.b, '"'), s...), '"')
}

func slow(s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always can be
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// Decode reads exactly what Encode writes. The final comparison excludes duplicate keys, unknown
// fields, other cases, other orders, and trailing data all at once.
func Decode(b []byte) (*Plan, error) {
	if len(b) > MaxSize {
		return nil, fmt.Errorf("decoding plan: %d bytes, more than %d", len(b), MaxSize)
	}
	var p Plan
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("decoding plan: %w", err)
	}
	again, err := Encode(&p)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, b) {
		return nil, ErrSpelling
	}
	return &p, p.Validate()
}

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
