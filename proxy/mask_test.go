//go:build linux

package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// pieces hands text out in pieces of some lengths.
type pieces struct {
	text []byte
	r    *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	n := min(len(b), len(p.text), 1+p.r.IntN(7))
	copy(b, p.text[:n])
	p.text = p.text[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// However a text is cut, the value is covered and everything else stays.
func TestMask(t *testing.T) {
	const value = "abab-abac"
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var text []byte
		for range r.IntN(12) {
			switch r.IntN(3) {
			case 0:
				text = append(text, value...)
			case 1:
				text = append(text, value[:r.IntN(len(value))]...)
			default:
				text = append(text, byte('a'+r.IntN(3)))
			}
		}
		want := bytes.ReplaceAll(text, []byte(value), []byte("sbx-hidden-"[:len(value)]))
		got, err := io.ReadAll(newMask(io.NopCloser(&pieces{bytes.Clone(text), r}), []covered{{text: []byte(value)}},
			[]int64{-1, int64(len(text))}[seed%2]))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q became %q, want %q (%v)", text, got, want, err)
		}
	}
}

// Of texts that have parts in common all is covered, and nothing else, however they are cut.
func TestMaskOverlaps(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		some := func(n int) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte('A' + r.IntN(2))
			}
			return b
		}
		var cover []covered
		for range 1 + r.IntN(3) {
			cover = append(cover, covered{text: some(1 + r.IntN(9))})
		}
		text := some(r.IntN(60))
		want := bytes.Clone(text)
		for i := range text {
			for _, c := range cover {
				if bytes.HasPrefix(text[i:], c.text) {
					copy(want[i:], "........."[:len(c.text)])
				}
			}
		}
		back := r.IntN(2) * r.IntN(leastCovered)
		m := newMask(io.NopCloser(&pieces{bytes.Clone(text), r}), cover, []int64{-1, int64(len(text))}[seed%2])
		m.buf, m.back = m.buf[:min(len(m.buf), 24)], back // small, so that it is dropped often
		got, err := io.ReadAll(m)
		for i := range got {
			if got[i] >= 'a' || got[i] == '-' {
				got[i] = '.'
			}
		}
		if back > 0 && len(got) == len(want) { // what was handed on before it was known
			for i := range got {
				if got[i] == text[i] {
					want[i] = text[i]
				}
			}
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d: %q became %q, want %q of %q (%v)", seed, text, got, want, cover, err)
		}
	}
}

// A password whose user is long does not fit into the usual buffer: it is covered all the same, and the answer ends.
func TestMaskLong(t *testing.T) {
	value := strings.Repeat("a", maskBuffer) + "bcdefgh"
	for _, length := range []int64{-1, int64(len(value)) + 4} {
		m := newMask(io.NopCloser(strings.NewReader("<<"+value+">>")), []covered{{text: []byte(value)}}, length)
		got := make(chan []byte, 1)
		go func() {
			b, _ := io.ReadAll(m)
			got <- b
		}()
		select {
		case b := <-got:
			if len(b) != len(value)+4 || bytes.Contains(b, []byte("aaaa")) || !bytes.HasSuffix(b, []byte(">>")) {
				t.Errorf("length %d: %d bytes come back, %.20q", length, len(b), b)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("length %d: the answer does not end", length)
		}
	}
}
