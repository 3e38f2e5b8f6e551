package sniff

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// maxHead bounds the head of one request.
const maxHead = 64 << 10

var errHead = errors.New("it is no well-formed HTTP/1 request")

// Requests carries HTTP/1 requests from r to what open returns. Each is compared, not the first alone, because a
// connection can carry many; open is called with the name and the head of each before any byte of it is passed.
// Whatever two readers could understand differently is refused.
func Requests(r *bufio.Reader, open func(name string, head []byte) (io.Writer, error)) error {
	for first := true; ; first = false {
		if _, err := r.Peek(1); err != nil {
			if err == io.EOF && !first {
				return nil
			}
			return err
		}
		head, err := readHead(r)
		if err != nil {
			return err
		}
		w, err := open(head.name, head.raw)
		if err != nil {
			return err
		}
		if _, err = w.Write(head.raw); err != nil {
			return err
		}
		if head.chunked {
			err = copyChunks(w, r)
		} else if head.length > 0 {
			_, err = io.CopyN(w, r, head.length)
		}
		if err != nil {
			return err
		}
	}
}

// head is what is known of one request.
type head struct {
	raw     []byte
	name    string
	length  int64
	chunked bool
}

// readLine takes one line that ends in CR LF and returns it without that end.
func readLine(r *bufio.Reader, room *int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if *room -= len(part); *room < 0 {
			return nil, errors.New("the head of the request is too long")
		}
		if err == nil {
			break
		}
		if err != bufio.ErrBufferFull {
			return nil, err
		}
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, errHead
	}
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return nil, errHead
		}
	}
	return line, nil
}

func readHead(r *bufio.Reader) (h head, err error) {
	room := maxHead
	line, err := readLine(r, &room)
	if err != nil {
		return h, err
	}
	method, rest, _ := strings.Cut(string(line), " ")
	target, version, _ := strings.Cut(rest, " ")
	if !token(method) || target == "" || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return h, errHead
	}
	if method == "CONNECT" {
		return h, errors.New("CONNECT would lead elsewhere")
	}
	h.raw = append(append(h.raw, line...), "\r\n"...)
	f, err := h.readFields(r, &room)
	if err != nil {
		return h, err
	}
	if len(f.host) != 1 {
		return h, errors.New("the request has not one Host")
	}
	if h.name, err = requestName(f.host[0], target); err != nil {
		return h, err
	}
	return h, h.setLength(f, version)
}

// fields are the values of the header fields that say whom a request is for, and how long it is.
type fields struct{ host, length, coding []string }

// readFields reads the header fields up to the empty line, and leaves out what must not be passed on.
func (h *head) readFields(r *bufio.Reader, room *int) (f fields, err error) {
	for {
		line, err := readLine(r, room)
		if err != nil {
			return f, err
		}
		if len(line) == 0 {
			h.raw = append(h.raw, "\r\n"...)
			return f, nil
		}
		key, value, ok := strings.Cut(string(line), ":")
		if !ok || !token(key) {
			return f, errHead
		}
		value = strings.Trim(value, " \t")
		switch strings.ToLower(key) {
		case "host":
			f.host = append(f.host, value)
		case "content-length":
			f.length = append(f.length, value)
		case "transfer-encoding":
			f.coding = append(f.coding, strings.ToLower(value))
		case "upgrade":
			if value != "h2c" {
				return f, fmt.Errorf("an upgrade to %.40q cannot be followed", value)
			}
			continue // an offer that can be left out
		}
		h.raw = append(append(h.raw, line...), "\r\n"...)
	}
}

// setLength notes how much follows the head; what two readers could read differently is an error.
func (h *head) setLength(f fields, version string) error {
	switch {
	case len(f.coding) == 1 && f.coding[0] == "chunked" && len(f.length) == 0 && version == "HTTP/1.1":
		h.chunked = true
	case len(f.coding) > 0 || len(f.length) > 1:
		return errHead
	case len(f.length) == 1:
		n, err := strconv.ParseUint(f.length[0], 10, 62)
		if err != nil || f.length[0][0] == '+' {
			return errHead
		}
		h.length = int64(n)
	}
	return nil
}

// requestName is the name that Host gives; a target that names a host must name the same.
func requestName(host, target string) (string, error) {
	bare := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", errHead
		}
		bare = h
	}
	name, err := plainName(bare)
	if err != nil {
		return "", err
	}
	if target[0] == '/' || target == "*" {
		return name, nil
	}
	rest, ok := strings.CutPrefix(target, "http://")
	authority, _, _ := strings.Cut(rest, "/")
	if !ok || !strings.EqualFold(authority, host) {
		return "", errors.New("the request names two hosts")
	}
	return name, nil
}

// token says whether s is what methods and field names consist of.
func token(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') &&
			strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// copyChunks passes a body in chunks, to its end.
func copyChunks(w io.Writer, r *bufio.Reader) error {
	for {
		room := 64
		line, err := readLine(r, &room)
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(line), 16, 40)
		if err != nil || line[0] == '+' || line[0] == '_' {
			return errHead
		}
		if _, err = fmt.Fprintf(w, "%s\r\n", line); err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if _, err = io.CopyN(w, r, int64(n)); err != nil {
			return err
		}
		if line, err = readLine(r, &room); err != nil || len(line) != 0 {
			return errHead
		}
		if _, err = io.WriteString(w, "\r\n"); err != nil {
			return err
		}
	}
	for room := maxHead; ; { // trailers
		line, err := readLine(r, &room)
		if err != nil {
			return err
		}
		if _, err = fmt.Fprintf(w, "%s\r\n", line); err != nil || len(line) == 0 {
			return err
		}
	}
}
