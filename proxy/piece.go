//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// piece is the part of an answer that a program has asked for (RFC 9110, 14). The server is asked for a little more on
// both sides, so that the program cannot choose a part in which a value is cut and so not known for one.
type piece struct {
	// of the part; where first is -1, the last so many bytes; where last is maxByte, all from first on
	first, last int64
	from        int64 // the first that was asked for
}

const maxByte = math.MaxInt64

// wholly is a head without what asks for a part of the answer in a way that is not understood: any header about a range
// but these. Azure's own says what Range does, and comes first.
func wholly(h http.Header) http.Header {
	out := http.Header{}
	for name, list := range h {
		switch {
		case !aboutRange(name):
		case name == "Range" && h["X-Ms-Range"] != nil:
			continue
		case name == "X-Ms-Range":
			name = "Range"
		case name == "Range", name == "If-Range",
			strings.HasSuffix(name, "Content-Range"), // of what is sent
			strings.HasSuffix(name, "-Source-Range"): // of what the server copies
		default:
			continue
		}
		out[name] = list
	}
	return out
}

// aboutRange says whether a header's name has the word. To servers behind CGI X_A is X-A.
func aboutRange(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c == '-' || c == '_' })
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.TrimPrefix(strings.TrimSuffix(word, "s"), "byte") == "range"
	})
}

// widen has a request ask for more than the program does. A range that is not one of bytes alone goes: the answer is
// whole then.
func (x *exchange) widen(out *http.Request, known []*secret) {
	by := int64(0)
	for _, s := range known {
		for _, c := range covering(nil, s, s.texts()...) {
			by = max(by, int64(len(c.text)))
		}
	}
	if by == 0 {
		return
	}
	out.Header = wholly(out.Header)
	list := out.Header["Range"]
	if len(list) == 0 || out.Method == http.MethodHead {
		return
	}
	for _, v := range out.Header["Authorization"] { // how it is spelled there, or signed, is longer
		by = max(by, int64(len(v)))
	}
	p, ok := readRange(list)
	if !ok {
		out.Header.Del("Range")
		out.Header.Del("If-Range")
		return
	}
	x.piece = p
	if p.first < 0 {
		out.Header.Set("Range", fmt.Sprintf("bytes=-%d", p.last+by))
		return
	}
	if p.from = max(p.first-by, 0); p.last == maxByte {
		out.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.from))
	} else {
		out.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", p.from, p.last+by))
	}
}

// readRange reads a header that asks for one range of bytes.
func readRange(list []string) (*piece, bool) {
	text, ok := strings.CutPrefix(list[0], "bytes=")
	first, last, cut := strings.Cut(strings.TrimSpace(text), "-")
	if !ok || !cut || len(list) != 1 || first == "" && last == "" {
		return nil, false
	}
	p, ok1, ok2 := &piece{first: -1, last: maxByte}, true, true
	if first != "" {
		p.first, ok1 = byteAt(first)
	}
	if last != "" {
		p.last, ok2 = byteAt(last)
	}
	return p, ok1 && ok2 && p.first <= p.last
}

// byteAt reads a number of at most 18 digits.
func byteAt(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil && len(text) <= 18
}

var errPiece = errors.New("it has sent another part than it was asked for")

// cut leaves of an answer what the program has asked for. Its values are covered already.
func (p *piece) cut(r *http.Response) error {
	if r.StatusCode != http.StatusPartialContent {
		return nil // all of it, or none
	}
	begin, total, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
	one, two, ok2 := strings.Cut(begin, "-")
	from, ok3 := byteAt(one)
	to, ok4 := byteAt(two)
	size, sized := byteAt(total)
	if !ok || !ok2 || !ok3 || !ok4 || from > to || p.first >= 0 && from != p.from ||
		p.first < 0 && (!sized || to != size-1) {
		return errPiece
	}
	first, last := p.first, min(p.last, to)
	if first < 0 {
		first, last = max(size-p.last, from), to
	}
	for _, name := range [...]string{"Digest", "Content-Digest", "Content-Md5"} { // of what the server has sent
		r.Header.Del(name)
	}
	if first > last { // only what was asked for beside it is there
		r.StatusCode, r.Status = http.StatusRequestedRangeNotSatisfiable, ""
		r.Header.Set("Content-Range", "bytes */"+total)
		r.Header.Del("Content-Type")
		first, last = from, from-1
	} else {
		r.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%s", first, last, total))
	}
	r.ContentLength, r.TransferEncoding = last-first+1, nil
	r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	r.Body = &slice{r.Body, first - from, r.ContentLength}
	return nil
}

// slice is a part of a body.
type slice struct {
	io.ReadCloser
	skip, left int64
}

func (s *slice) Read(b []byte) (int, error) {
	if s.skip > 0 {
		n, err := io.CopyN(io.Discard, s.ReadCloser, s.skip)
		if s.skip -= n; err != nil {
			return 0, unexpected(err)
		}
	}
	if s.left == 0 {
		// To its end, so that the connection can be used again.
		_, _ = io.CopyN(io.Discard, s.ReadCloser, maskBuffer)
		return 0, io.EOF
	}
	n, err := s.ReadCloser.Read(b[:min(int64(len(b)), s.left)])
	if s.left -= int64(n); s.left > 0 && err != nil {
		err = unexpected(err)
	}
	return n, err
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
