//go:build linux

package main

import (
	"bytes"
	"io"
	"strings"
)

// mask is a body in which a text is covered, as long as it is: a server may send back what it was sent. What comes is
// handed on at once, but for an end that may be the text's beginning.
type mask struct {
	io.Closer
	from            io.Reader
	text, cover     []byte
	buf             []byte
	at, ready, full int // of buf: what was handed on, what can be, what was read
	back            int // a beginning up to this long is not kept back; what follows it is covered
	err             error
}

// maskBuffer is larger than most texts. A password is as long as the client has made the user before it.
const maskBuffer = 64 << 10

// newMask takes the length of the body, if that is known: a short one takes a short buffer.
func newMask(from io.ReadCloser, text string, length int64) *mask {
	const word = "sbx-hidden-"
	size := max(int64(maskBuffer), int64(len(text))+1)
	if length >= 0 {
		size = min(size, max(length, int64(len(text)))+1)
	}
	return &mask{Closer: from, from: from, text: []byte(text), buf: make([]byte, size),
		cover: []byte(strings.Repeat(word, len(text)/len(word)+1)[:len(text)])}
}

func (m *mask) Read(b []byte) (int, error) {
	for m.at == m.ready {
		if m.err != nil {
			return 0, m.err
		}
		begin := max(m.ready-m.back, 0)
		held := copy(m.buf, m.buf[begin:m.full])
		n, err := m.from.Read(m.buf[held:])
		m.at, m.full, m.err = m.ready-begin, held+n, err
		m.take()
	}
	n := copy(b, m.buf[m.at:m.ready])
	m.at += n
	return n, nil
}

// take covers the text in what was read, and keeps back what may be its beginning.
func (m *mask) take() {
	b := m.buf[:m.full]
	for at := b; ; {
		i := bytes.Index(at, m.text)
		if i < 0 {
			break
		}
		at = at[i+copy(at[i:], m.cover):]
	}
	m.ready = m.full
	if n := beginning(b, m.text); m.err == nil && n > m.back {
		m.ready = max(m.full-n, m.at)
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
