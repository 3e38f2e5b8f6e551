//go:build linux

package prompt

import (
	"bytes"
	"strings"
	"testing"
)

func TestScanner(t *testing.T) {
	for _, c := range []struct {
		in    string
		clean int
		alt   bool
	}{
		{"plain", 5, false},
		{"a\x1b", 1, false},
		{"a\x1b[3", 1, false},
		{"a\x1b[31mb", 7, false},
		{"\x1b[?1049h", 8, true},
		{"\x1b[?1049h\x1b[?1049l", 16, false},
		{"\x1b[?25;1049h", 11, true},
		{"\x1b[?47h\x1bc", 8, false},
		{"\x1b[1049h", 7, false},
		{"\x1b]0;title", 0, false},
		{"\x1b]0;\x1b[?1049h", 12, true},
		{"\x1b]0;title\x07x", 11, false},
		{"\x1b]0;t\x1b\\x", 8, false},
		{"\x1bPq#0\x1b\\", 7, false},
		{"\x1b(", 0, false},
		{"\x1b(B", 3, false},
		{"\x1b]0;\x18x", 6, false},
		{"\xc3", 0, false},
		{"\xc3\xa4", 2, false},
		{"\xff\xff", 2, false},
		{"\u009b?1049h", 8, true},
		{"\x1b[?1049\x0ah", 9, true},
		{"\x1b[?" + strings.Repeat("9", 100) + ";1049h", 109, false},
	} {
		var s scanner
		if got := s.feed([]byte(c.in)); got != c.clean || s.alt != c.alt {
			t.Errorf("%q: clean %d alt %v, want %d %v", c.in, got, s.alt, c.clean, c.alt)
		}
	}
}

// However the output is cut, the state is the same and nothing is lost.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("a\x1b[?1049hb\x1b]0;x\x07\xc3\xa4"), 3)
	f.Add([]byte("\x1b\xe9\xe9\xab"), 3) // a letter that is not whole, in a sequence
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		if len(b) == 0 || len(b) > maxRest {
			return
		}
		if cut %= len(b); cut < 0 {
			cut = -cut
		}
		var whole, parts scanner
		n := whole.feed(b)
		if n < 0 || n > len(b) {
			t.Fatal(n)
		}
		saved := parts
		k := parts.feed(b[:cut])
		parts = saved
		parts.feed(b[:k])
		rest := append(bytes.Clone(b[k:cut]), b[cut:]...)
		if m := k + parts.feed(rest); m != n || whole.alt != parts.alt || whole.state != parts.state {
			t.Fatalf("%q cut at %d: clean %d and %d, %+v %+v", b, cut, n, m, whole, parts)
		}
	})
}
