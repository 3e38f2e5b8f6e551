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
		if i := bytes.IndexByte(l.buf[l.seen:], '\n'); i >= 0 {
			line := l.buf[l.next : l.seen+i]
			l.next, l.seen = l.seen+i+1, l.seen+i+1
			if len(line) >= MaxLine {
				return nil, errLongLine
			}
			return line, nil
		}
		if len(l.buf)-l.next >= MaxLine {
			return nil, errLongLine
		}
		if l.next > 0 {
			l.buf = l.buf[:copy(l.buf, l.buf[l.next:])]
			l.next = 0
		}
		l.seen = len(l.buf)
		if len(l.buf) == cap(l.buf) {
			l.buf = append(make([]byte, 0, max(512, 2*cap(l.buf))), l.buf...)
		}
		n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if n == 0 && err != nil {
			return nil, err
		}
	}
}
