package plan

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrSpelling is returned for bytes that describe a plan but are not what Encode would have written.
var ErrSpelling = errors.New("plan is not in canonical form")

// MaxSize bounds a plan that is kept, in bytes. Arguments and environment are the most of a large one: the kernel takes
// 6 MiB (execve(2)), of which a byte may be six in JSON.
const MaxSize = 40 << 20

// Encode writes p in its one spelling: indented by nothing, fields in the order of the types.
func Encode(p *Plan) ([]byte, error) {
	b := append(encode(p), '\n')
	if len(b) > MaxSize {
		return nil, fmt.Errorf("encoding plan: %d bytes, more than %d", len(b), MaxSize)
	}
	return b, nil
}

func encode(p *Plan) []byte {
	e := encoder{b: make([]byte, 0, 32<<10), fields: map[reflect.Type][]field{}}
	e.add(reflect.ValueOf(p).Elem())
	return e.b
}

// MarshalJSON implements json.Marshaler, for plans of any size: those that are only shown.
func (p *Plan) MarshalJSON() ([]byte, error) { return encode(p), nil }

// encoder writes what encoding/json would, in a fifth of its time: every run encodes its plan once, so nothing that is
// prepared for later values pays.
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
		e.b = Bytes(v.String()).AppendJSON(e.b)
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
			name, how, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			fields = append(fields, field{`"` + name + `":`, how == "omitempty"})
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

// Decode reads exactly what Encode writes. The final comparison excludes duplicate keys, unknown
// fields, other cases, other orders, and trailing data all at once.
func Decode(b []byte) (*Plan, error) {
	if len(b) > MaxSize {
		return nil, fmt.Errorf("decoding plan: %d bytes, more than %d", len(b), MaxSize)
	}
	var p Plan
	d := decoder{left: bytes.TrimSuffix(b, []byte("\n"))}
	if d.read(reflect.ValueOf(&p).Elem()); d.bad {
		return nil, ErrSpelling
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

// decoder reads what encoder writes, and what comes close to it: Decode compares.
type decoder struct {
	left []byte
	bad  bool
}

// skip says whether word is next, and goes behind it then.
func (d *decoder) skip(word string) bool {
	rest, ok := bytes.CutPrefix(d.left, []byte(word))
	if ok {
		d.left = rest
	}
	return ok
}

func (d *decoder) want(word string) { d.bad = !d.skip(word) || d.bad }

// number takes what stands before one of the characters that end a number.
func (d *decoder) number() string {
	n := max(bytes.IndexAny(d.left, ",]}"), 0)
	word := string(d.left[:n])
	d.left = d.left[n:]
	return word
}

func (d *decoder) read(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.readStruct(v)
	case reflect.Slice:
		d.readList(v)
	case reflect.Array:
		d.want("[")
		for i := range v.Len() {
			if i > 0 {
				d.want(",")
			}
			d.read(v.Index(i))
		}
		d.want("]")
	case reflect.Pointer:
		if !d.skip("null") {
			v.Set(reflect.New(v.Type().Elem()))
			d.read(v.Elem())
		}
	case reflect.String:
		v.SetString(d.text())
	case reflect.Bool:
		v.SetBool(d.skip("true"))
		if !v.Bool() {
			d.want("false")
		}
	default:
		d.readNumber(v)
	}
}

func (d *decoder) readNumber(v reflect.Value) {
	word, err := d.number(), error(nil)
	if v.CanInt() {
		var n int64
		n, err = strconv.ParseInt(word, 10, v.Type().Bits())
		v.SetInt(n)
	} else {
		var n uint64
		n, err = strconv.ParseUint(word, 10, v.Type().Bits())
		v.SetUint(n)
	}
	d.bad = d.bad || err != nil
}

func (d *decoder) readStruct(v reflect.Value) {
	d.want("{")
	sep := ""
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if d.skip(sep + `"` + name + `":`) {
			sep = ","
			d.read(v.Field(i))
		}
	}
	d.want("}")
}

func (d *decoder) readList(v reflect.Value) {
	if d.skip("null") {
		return
	}
	d.want("[")
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; !d.bad && !d.skip("]"); i++ { // it grows with what is really there
		if i > 0 {
			d.want(",")
		}
		v.Grow(1)
		v.SetLen(i + 1)
		d.read(v.Index(i))
	}
}

// text reads a string.
func (d *decoder) text() string {
	for i := 1; i < len(d.left); i++ {
		switch d.left[i] {
		case '\\':
			i++
		case '"':
			var b Bytes
			d.bad = b.UnmarshalJSON(d.left[:i+1]) != nil || d.bad
			d.left = d.left[i+1:]
			return string(b)
		}
	}
	d.bad = true
	return ""
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
