package plan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// MaxSize is the largest encoded plan that is read, in bytes.
const MaxSize = 256 << 10

// ErrPacked is returned for bytes that Pack does not write.
var ErrPacked = errors.New("not a packed plan")

// Pack writes s as sbx-helper reads it: the fields in the order of the types, every number in as few bytes as it takes (varint of
// Protocol Buffers), lists and strings behind their length. There are no names and
// nothing to choose, so a plan has one spelling, and reading it takes one pass.
func Pack(s *Setup) ([]byte, error) {
	b := pack(make([]byte, 0, 16<<10), reflect.ValueOf(s).Elem())
	if len(b) > MaxSize {
		return nil, fmt.Errorf("encoding plan: %d bytes, more than %d", len(b), MaxSize)
	}
	return b, nil
}

func pack(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			b = pack(b, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			b = binary.AppendUvarint(b, uint64(v.Len()))
		}
		for i := range v.Len() {
			b = pack(b, v.Index(i))
		}
	case reflect.String:
		b = append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	default:
		if v.CanInt() {
			return binary.AppendUvarint(b, uint64(v.Int()))
		}
		b = binary.AppendUvarint(b, v.Uint())
	}
	return b
}

// Unpack reads exactly what Pack writes, and checks it.
func Unpack(b []byte) (*Setup, error) {
	var s Setup
	r := unpacker{left: b, bad: len(b) > MaxSize}
	r.read(reflect.ValueOf(&s).Elem())
	if r.bad || len(r.left) > 0 {
		return nil, ErrPacked
	}
	return &s, s.check()
}

// unpacker is what is left to read. Once it is bad, it reads zeros.
type unpacker struct {
	left []byte
	bad  bool
}

func (r *unpacker) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.left)) {
		r.bad = true
		return nil
	}
	out := r.left[:n]
	r.left = r.left[n:]
	return out
}

func (r *unpacker) number(max uint64) uint64 {
	n, size := binary.Uvarint(r.left)
	if r.bad || size <= 0 || size > 1 && r.left[size-1] == 0 || n > max { // a last byte of zero says nothing
		r.bad = true
		return 0
	}
	r.left = r.left[size:]
	return n
}

func (r *unpacker) read(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			r.read(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			r.read(v.Index(i))
		}
	case reflect.Slice: // it grows with what is really there, not with what is said
		for n, i := int(r.number(MaxSize)), 0; i < n && !r.bad; i++ {
			v.Grow(1)
			v.SetLen(i + 1)
			r.read(v.Index(i))
		}
	case reflect.String:
		v.SetString(string(r.take(r.number(MaxSize))))
	case reflect.Bool:
		v.SetBool(r.number(1) == 1)
	case reflect.Int64:
		v.SetInt(int64(r.number(math.MaxUint64)))
	default: // Uint panics, and so refuses, where a new field is of another kind
		v.SetUint(r.number(math.MaxUint64 >> (64 - 8*v.Type().Size())))
	}
}
