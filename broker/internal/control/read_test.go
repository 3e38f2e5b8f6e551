package control

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzSplitObject holds the splitting of lines against the standard library's.
func FuzzSplitObject(f *testing.F) {
	for _, l := range []string{`{}`, ` { "a" : 1 , "b":[{"c":"}"},"]"] } `,
		`{"a\u0041":"x\\","b":{"\"":[1,2,{"d":null}]},"c":-1.5e3,"d":true}`, `{"a":1,"a":2}`, `{"\u0061":"","a":""}`, `[1]`,
		`"a"`} {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := splitObject(line)
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(line))
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		for _, m := range got {
			name, err := d.Token()
			var raw json.RawMessage
			if err == nil {
				err = d.Decode(&raw)
			}
			if err != nil || name != m.name || !bytes.Equal(raw, m.raw) {
				t.Fatalf("%q: got %q: %q, want %q: %q, %v", line, m.name, m.raw, name, raw, err)
			}
		}
		if d.More() {
			t.Fatalf("%q: something is missing", line)
		}
	})
}
