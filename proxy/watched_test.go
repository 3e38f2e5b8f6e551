//go:build linux

package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"sbx.example/sbx/shared/proxied"
)

// A placeholder in a body is told of once, wherever reads cut it, and the body goes on as it was.
func TestPlaceholdersInBodies(t *testing.T) {
	one, key := &secret{}, &secret{}
	one.Secret = proxied.Secret{Name: "one", Placeholder: "sbx-placeholder-one-abcdef"}
	key.Secret = proxied.Secret{Name: "key", Placeholder: "AKIASBXABCDEF", Key: "sbx-placeholder-uvwxyz"}
	pad := strings.Repeat("x", 100)
	for in, want := range map[string]string{
		pad: "", "": "", one.Placeholder[1:]: "", one.Placeholder: "one",
		pad + one.Placeholder + pad + one.Placeholder:   "one",
		pad + one.Placeholder + key.Key:                 "one key",
		pad + key.Placeholder + key.Key + pad:           "key",
		one.Placeholder[:9] + pad + one.Placeholder[9:]: "",
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r },
			"bytes": iotest.OneByteReader, "halves": iotest.HalfReader} {
			var told []string
			b := &watched{ReadCloser: io.NopCloser(reader(strings.NewReader(in))), list: []*secret{one, key},
				found: func(k *secret) { told = append(told, k.Name) }}
			out, err := io.ReadAll(b)
			if got := strings.Join(told, " "); err != nil || string(out) != in || got != want {
				t.Errorf("%s, %s: %q, %v, told of %q, want %q", in, how, out, err, got, want)
			}
		}
	}
}
