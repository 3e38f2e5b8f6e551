package plan

import (
	"encoding/binary"
	"fmt"
	"reflect"

	setup "sbx.example/sbx/shared/plan"
)

// Pack writes s as sbx-helper reads it, see Unpack of shared/plan.
func Pack(s *Setup) ([]byte, error) {
	b := pack(make([]byte, 0, 16<<10), reflect.ValueOf(s).Elem())
	if len(b) > setup.MaxSize {
		return nil, fmt.Errorf("encoding plan: %d bytes, more than %d", len(b), setup.MaxSize)
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
