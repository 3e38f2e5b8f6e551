package plan

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
)

// ErrPacked is returned for bytes that are no packed plan.
var ErrPacked = errors.New("not a packed plan")

// Unpack reads what sbx-helper is sent, and checks it: the fields in the order of the types, every number in as few
// bytes as it takes (varint of Protocol Buffers), lists and strings behind their length. There are no names and nothing
// to choose, so a plan has one spelling, and reading it takes one pass. Package broker/plan writes it.
func Unpack(b []byte) (*Setup, error) {
	var s Setup
	r := unpacker{left: b, bad: len(b) > MaxSize}
	r.read(reflect.ValueOf(&s).Elem())
	if r.bad || len(r.left) > 0 {
		return nil, ErrPacked
	}
	return &s, s.Check()
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
