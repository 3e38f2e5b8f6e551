//go:build linux

package main

import (
	"bytes"
	"io"
)

// mask is a body in which texts are covered, as long as they are: a server may send back what it was sent. What comes
// is handed on at once, but for an end that may be the beginning of one.
type mask struct {
	io.Closer
	from            io.Reader
	cover           []covered
	buf             []byte // as it came
	spans           []span // of buf, in order; one may have begun before it
	at, ready, full int    // of buf: what was handed on, what can be, what was read
	back            int    // a beginning up to this long is not kept back; what follows it is covered
	err             error
}

// maskBuffer is larger than most texts. A password is as long as the client has made the user before it.
const maskBuffer = 64 << 10

// newMask takes the length of the body, if that is known: a short one takes a short buffer.
func newMask(from io.ReadCloser, cover []covered, length int64) *mask {
	longest := 0
	for _, c := range cover {
		longest = max(longest, len(c.text))
	}
	size := max(maskBuffer, int64(longest+leastCovered)) // what is kept back, also of a socket, and one byte more
	if length >= 0 {
		size = min(size, max(length, int64(longest))+1)
	}
	return &mask{Closer: from, from: from, cover: cover, buf: make([]byte, size)}
}

func (m *mask) Read(b []byte) (int, error) {
	for m.at == m.ready {
		if m.err != nil {
			return 0, m.err
		}
		m.drop(max(m.ready-m.back, 0))
		held := m.full
		n, err := m.from.Read(m.buf[held:])
		m.full, m.err = held+n, err
		m.take(held)
	}
	n := copy(b, m.buf[m.at:m.ready])
	const word = "sbx-hidden-"
	for _, s := range m.spans {
		for i := max(s.from, m.at); i < min(s.to, m.at+n); i++ {
			b[i-m.at] = word[(i-s.from)%len(word)]
		}
	}
	m.at += n
	return n, nil
}

// drop forgets the first bytes.
func (m *mask) drop(n int) {
	m.full = copy(m.buf, m.buf[n:m.full])
	m.at, m.ready = m.at-n, m.ready-n
	left := m.spans[:0]
	for _, s := range m.spans {
		if s.to > n {
			left = append(left, span{s.from - n, s.to - n, s.by})
		}
	}
	m.spans = left
}

// take finds texts in what was read, of which the first bytes were known, and keeps back what may begin one.
func (m *mask) take(known int) {
	b := m.buf[:m.full]
	m.spans = spans(m.spans, b, m.cover, known)
	m.ready = m.full
	if m.err != nil {
		return
	}
	for _, c := range m.cover {
		if n := beginning(b, c.text); n > m.back {
			m.ready = max(min(m.ready, m.full-n), m.at)
		}
	}
}

// beginning is how long an end of b is that is a beginning of text, and not all of it.
func beginning(b, text []byte) int {
	for n := min(len(b), len(text)-1); n > 0; n-- {
		if b[len(b)-n] == text[0] && bytes.HasPrefix(text, b[len(b)-n:]) {
			return n
		}
	}
	return 0
}
