package sigv4

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A body that is signed in chunks: SIZE;chunk-signature=SIGNATURE, the data, and so on until one without data. Behind
// that may stand headers, and the signature of those.
const (
	chunkMark   = ";chunk-signature="
	trailerMark = "x-amz-trailer-signature"
)

// MaxChunk bounds a chunk: its signature stands before it, so that it has to be held.
const MaxChunk = 1 << 20

// maxTrailer bounds a line of a chunk, and what stands behind the last one.
const maxTrailer = 16 << 10

// ChunkError says why the rest of a body does not go on.
type ChunkError struct{ why string }

func (e ChunkError) Error() string { return "a body that is signed in chunks: " + e.why }

// chain signs one part after the other, each with the signature before it.
type chain struct {
	signer
	last string
}

func (c *chain) chunk(hash string) string {
	c.last = c.sign(algorithm+"-PAYLOAD", c.last, emptyHash, hash)
	return c.last
}

func (c *chain) trailer(hash string) string { return c.sign(algorithm+"-TRAILER", c.last, hash) }

const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// chunks is a body in which each signature is verified and made anew. It is as long as it was.
type chunks struct {
	io.Closer
	from      *bufio.Reader
	was, now  chain
	trailered bool
	ready     bytes.Buffer // the chunk that goes on
	err       error
}

func newChunks(from io.ReadCloser, was, now chain, trailered bool) io.ReadCloser {
	if from == nil {
		return nil
	}
	return &chunks{Closer: from, from: bufio.NewReaderSize(from, maxTrailer), was: was, now: now, trailered: trailered}
}

func (c *chunks) Read(b []byte) (int, error) {
	for c.ready.Len() == 0 {
		if c.err != nil {
			return 0, c.err
		}
		c.ready.Reset()
		if c.err = c.next(); c.err != nil && !errors.Is(c.err, io.EOF) {
			c.ready.Reset() // what is wrong does not go on
		}
	}
	return c.ready.Read(b)
}

// next makes the next chunk ready. io.EOF says that it was the last one.
func (c *chunks) next() error {
	line, err := c.from.ReadSlice('\n')
	if err != nil {
		return cut(err)
	}
	text, marked := strings.CutSuffix(string(line), "\r\n")
	digits, said, ok := strings.Cut(text, chunkMark)
	size, err := strconv.ParseUint(digits, 16, 32)
	switch {
	case !marked || !ok || err != nil:
		return ChunkError{"one does not begin with its length and signature"}
	case size > MaxChunk:
		return ChunkError{fmt.Sprintf("one has more than %d bytes, and would have to be held", MaxChunk)}
	}
	head := digits + chunkMark
	c.ready.WriteString(head)
	c.ready.WriteString(said) // as long as the one that replaces it
	c.ready.WriteString("\r\n")
	begin := c.ready.Len()
	if size > 0 { // behind the last one there may be headers instead of a line's end
		if _, err := io.CopyN(&c.ready, c.from, int64(size)+2); err != nil {
			return cut(err)
		}
	}
	all := c.ready.Bytes()
	data := all[begin : begin+int(size)]
	if size > 0 && !bytes.HasSuffix(all, []byte("\r\n")) {
		return ChunkError{"one is longer than it says"}
	}
	hash := Hash(data)
	if !same(c.was.chunk(hash), said) {
		return ChunkError{"the signature of one is not its own"}
	}
	copy(all[len(head):], c.now.chunk(hash))
	if size > 0 {
		return nil
	}
	if err := c.end(); err != nil {
		return err
	}
	return io.EOF
}

// end makes ready what stands behind the last chunk.
func (c *chunks) end() error {
	rest, err := io.ReadAll(io.LimitReader(c.from, maxTrailer+1))
	switch {
	case err != nil:
		return err
	case len(rest) > maxTrailer:
		return ChunkError{"what stands behind it is too long"}
	case !c.trailered && len(bytes.Trim(rest, "\r\n")) > 0:
		return ChunkError{"something stands behind it"}
	}
	if !c.trailered {
		c.ready.Write(rest)
		return nil
	}
	var said, text string // the signature, and what it is of
	at := 0               // where it stands
	for line := range strings.Lines(string(rest)) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		name, value = strings.ToLower(name), strings.TrimSpace(value)
		switch {
		case ok && name == trailerMark && said == "":
			said, at = value, c.ready.Len()+strings.LastIndex(line, value)
		case ok:
			text += name + ":" + value + "\n"
		}
		c.ready.WriteString(line)
	}
	hash := Hash([]byte(text))
	if !same(c.was.trailer(hash), said) {
		return ChunkError{"the signature of the headers behind it is not theirs"}
	}
	copy(c.ready.Bytes()[at:], c.now.trailer(hash))
	return nil
}

// cut is an end in the middle.
func cut(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, bufio.ErrBufferFull):
		return ChunkError{"one does not begin with its length and signature"}
	}
	return err
}
