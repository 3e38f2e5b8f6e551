package control

import (
	"bytes"
	"errors"
	"io"
)

// MaxLine bounds a line in both directions, newline included.
const MaxLine = 64 << 10

var errLongLine = errors.New("line is longer than 64 KiB")

// lineReader cuts a stream into lines. Its buffer grows with the longest line only, up to MaxLine.
type lineReader struct {
	r    io.Reader
	buf  []byte
	next int // first unread byte
	seen int // buf[next:seen] holds no newline
}

// read returns the next line without its newline; the bytes are good until the next call. What stands
// after the last newline is no line.
func (l *lineReader) read() ([]byte, error) {
	for {
		if line, err := l.cut(); line != nil || err != nil {
			return line, err
		}
		if err := l.more(l.r.Read); err != nil {
			return nil, err
		}
	}
}

// cut takes the next line off what was read; nil if there is none.
func (l *lineReader) cut() ([]byte, error) {
	i := bytes.IndexByte(l.buf[l.seen:], '\n')
	if i < 0 {
		l.seen = len(l.buf)
		if len(l.buf)-l.next >= MaxLine {
			return nil, errLongLine
		}
		return nil, nil
	}
	line := l.buf[l.next : l.seen+i]
	l.next, l.seen = l.seen+i+1, l.seen+i+1
	if len(line) >= MaxLine {
		return nil, errLongLine
	}
	return line, nil
}

// more reads once, by a Read.
func (l *lineReader) more(read func([]byte) (int, error)) error {
	if l.next > 0 {
		l.buf = l.buf[:copy(l.buf, l.buf[l.next:])]
		l.seen -= l.next
		l.next = 0
	}
	if len(l.buf) == cap(l.buf) {
		l.buf = append(make([]byte, 0, max(512, 2*cap(l.buf))), l.buf...)
	}
	n, err := read(l.buf[len(l.buf):cap(l.buf)])
	l.buf = l.buf[:len(l.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}
