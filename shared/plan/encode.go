package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxSize is the largest encoded plan that Decode reads, in bytes.
const MaxSize = 256 << 10

// ErrSpelling is returned for bytes that describe a plan but are not what Encode would have written.
var ErrSpelling = errors.New("plan is not in canonical form")

// Encode writes p in its one spelling: indented by nothing, fields in the order of the types.
func Encode(p *Plan) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encoding plan: %w", err)
	}
	if buf.Len() > MaxSize {
		return nil, fmt.Errorf("encoding plan: %d bytes, more than %d", buf.Len(), MaxSize)
	}
	return buf.Bytes(), nil
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
