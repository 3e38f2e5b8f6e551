//go:build linux

package nixdaemon

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Numbers of the worker protocol (Nix, worker-protocol.hh).
const (
	magicClient = 0x6e697863
	magicDaemon = 0x6478696f

	// From 1.25 on every message of a client ends where its own fields say. 1.38 adds a negotiation.
	oldest = 1<<8 | 25
	newest = 1<<8 | 37

	stderrNext  = 0x6f6c6d67
	stderrLast  = 0x616c7473
	stderrError = 0x63787470
)

const (
	maxString  = 1 << 20 // bytes of one string
	maxMessage = 4 << 20 // of a message, without the content of a file that follows it
)

var (
	errShape = errors.New("message does not have the form of its operation")
	errLong  = errors.New("message is too long")
)

// reader reads fields and keeps them as they came, to be passed on. The first error stays.
type reader struct {
	r   *bufio.Reader
	raw []byte
	err error
}

func newReader(r io.Reader) *reader { return &reader{r: bufio.NewReaderSize(r, 64<<10)} }

// take begins a new message and returns what was read of the last one.
func (r *reader) take() []byte {
	raw := r.raw
	r.raw = nil
	return raw
}

func (r *reader) bytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > maxString || uint64(len(r.raw))+n > maxMessage {
		r.err = errLong
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.r, b); err != nil {
		r.err = err
		return nil
	}
	r.raw = append(r.raw, b...)
	return b
}

func (r *reader) num() uint64 {
	b := r.bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *reader) flag() bool {
	n := r.num()
	if r.err == nil && n > 1 {
		r.err = errShape
	}
	return n == 1
}

// str reads a length, so many bytes, and zeros up to the next multiple of eight.
func (r *reader) str() string {
	n := r.num()
	s := r.bytes(n)
	for _, c := range r.bytes(-n & 7) {
		if c != 0 && r.err == nil {
			r.err = errShape
		}
	}
	return string(s)
}

func (r *reader) strs() []string {
	n := r.num()
	if n > maxMessage/8 && r.err == nil {
		r.err = errLong
	}
	var out []string
	for i := uint64(0); i < n && r.err == nil; i++ {
		out = append(out, r.str())
	}
	return out
}

func appendNum(b []byte, n uint64) []byte { return binary.LittleEndian.AppendUint64(b, n) }

func appendFlag(b []byte, v bool) []byte {
	if v {
		return appendNum(b, 1)
	}
	return appendNum(b, 0)
}

func appendStr(b []byte, s string) []byte {
	b = append(appendNum(b, uint64(len(s))), s...)
	return append(b, make([]byte, -len(s)&7)...)
}

func appendStrs(b []byte, list []string) []byte {
	b = appendNum(b, uint64(len(list)))
	for _, s := range list {
		b = appendStr(b, s)
	}
	return b
}

// frames copies the content that follows some messages: pieces with their length, and one of length 0 at the end.
func (r *reader) frames(w io.Writer) error {
	for {
		var head [8]byte
		if _, err := io.ReadFull(r.r, head[:]); err != nil {
			return err
		}
		if _, err := w.Write(head[:]); err != nil {
			return err
		}
		n := binary.LittleEndian.Uint64(head[:])
		if n == 0 {
			return nil
		}
		if n > 1<<62 {
			return errLong
		}
		if _, err := io.CopyN(w, r.r, int64(n)); err != nil {
			return err
		}
	}
}
