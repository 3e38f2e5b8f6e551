package sniff

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"sbx.example/sbx/broker/internal/policy/peer"
)

// maxHello bounds a ClientHello; those with keys against quantum computers have about 2 KiB.
const maxHello = 32 << 10

// ErrHello says that there is no ClientHello where one has to be.
var ErrHello = errors.New("it is no well-formed ClientHello")

var (
	errMore   = errors.New("the ClientHello is not complete")
	errNoName = errors.New("the ClientHello names no host (no SNI)")
	errECH    = errors.New("the ClientHello encrypts its name (ECH), so it cannot be compared")
	errTwo    = errors.New("the ClientHello names more than one host")
)

// Record and message types, extensions (RFC 8446, RFC 6066, RFC 9849).
const (
	recordHandshake = 22
	clientHello     = 1
	serverHello     = 2
	extServerName   = 0
	extECH          = 0xfe0d
	extESNI         = 0xffce // of an earlier draft
)

// IsTLS says whether a connection that begins with a byte speaks TLS.
func IsTLS(first byte) bool { return first == recordHandshake }

// Hello reads a ClientHello from r, as it came.
func Hello(r *bufio.Reader) (name string, raw []byte, err error) {
	for {
		name, size, err := readHello(raw)
		if err == nil {
			return name, raw[:size:size], nil
		}
		if err != errMore {
			return "", nil, err
		}
		if len(raw) > 2*maxHello {
			return "", nil, ErrHello
		}
		record, err := Record(r)
		raw = append(raw, record...)
		if err != nil {
			return "", nil, fmt.Errorf("%w: %w", errMore, err)
		}
	}
}

// Record reads one TLS record. What is none is an error, with what was read of it.
func Record(r *bufio.Reader) ([]byte, error) {
	b := make([]byte, 5, 512)
	if n, err := io.ReadFull(r, b); err != nil {
		return b[:n], err
	}
	size := int(b[3])<<8 | int(b[4])
	if b[1] != 3 || size > 1<<14+256 {
		return b, ErrHello
	}
	b = append(b, make([]byte, size)...)
	n, err := io.ReadFull(r, b[5:])
	return b[:5+n], err
}

// readHello reads the name out of the TLS records at the start of b, and how many bytes of b the ClientHello has.
// errMore asks for more of them. Everything with a second reading is refused: what the server reads must be what was
// compared.
func readHello(b []byte) (name string, size int, err error) {
	body, size, err := handshake(b)
	if err != nil {
		return "", 0, err
	}
	p := parser{body, false}
	p.skip(2 + 32) // version, random
	if id := p.vector(1); len(id) > 32 {
		return "", 0, ErrHello
	}
	suites, methods := p.vector(2), p.vector(1)
	if p.bad || len(suites) < 2 || len(suites)%2 != 0 || len(methods) < 1 {
		return "", 0, ErrHello
	}
	if len(p.b) == 0 {
		return "", 0, errNoName
	}
	exts := parser{p.vector(2), false}
	if p.bad || len(p.b) != 0 {
		return "", 0, ErrHello
	}
	seen := map[uint16]bool{}
	for len(exts.b) > 0 && !exts.bad {
		kind := exts.uint16()
		data := exts.vector(2)
		if exts.bad || seen[kind] {
			return "", 0, ErrHello
		}
		seen[kind] = true
		if kind == extServerName {
			if name, err = serverName(data); err != nil {
				return "", 0, err
			}
		}
	}
	switch {
	case exts.bad:
		return "", 0, ErrHello
	case seen[extECH] || seen[extESNI]:
		return "", 0, errECH
	case !seen[extServerName]:
		return "", 0, errNoName
	}
	return name, size, nil
}

// handshake puts the first handshake message together from its records. It must be a ClientHello and end where a record
// ends.
func handshake(b []byte) (body []byte, size int, err error) {
	var msg []byte
	for {
		rest := b[size:]
		if len(rest) > 0 && rest[0] != recordHandshake || len(rest) > 1 && rest[1] != 3 {
			return nil, 0, ErrHello
		}
		if len(rest) < 5 {
			return nil, 0, errMore
		}
		n := int(binary.BigEndian.Uint16(rest[3:]))
		if n == 0 || n > 1<<14 {
			return nil, 0, ErrHello
		}
		have := rest[5:min(len(rest), 5+n)]
		msg = append(msg, have...)
		if len(msg) > 0 && msg[0] != clientHello {
			return nil, 0, ErrHello
		}
		want := 4
		if len(msg) >= 4 {
			if want += int(msg[1])<<16 | int(msg[2])<<8 | int(msg[3]); want > maxHello {
				return nil, 0, ErrHello
			}
		}
		if len(have) < n {
			if len(msg) > want {
				return nil, 0, ErrHello
			}
			return nil, 0, errMore
		}
		size += 5 + n
		switch {
		case len(msg) >= 4 && len(msg) == want:
			return msg[4:], size, nil
		case len(msg) > want || size > 2*maxHello:
			return nil, 0, ErrHello
		}
	}
}

// serverName reads the extension that names the host.
func serverName(b []byte) (string, error) {
	p := parser{b, false}
	list := parser{p.vector(2), false}
	if p.bad || len(p.b) != 0 || len(list.b) == 0 {
		return "", ErrHello
	}
	kind := list.b[0]
	list.skip(1)
	text := list.vector(2)
	switch {
	case list.bad || kind != 0:
		return "", ErrHello
	case len(list.b) != 0:
		return "", errTwo
	}
	return plainName(string(text))
}

// plainName is a host's name as it is compared. A name that somebody else could read otherwise is none.
func plainName(s string) (string, error) {
	h, err := peer.Parse(s)
	if err != nil || h.Name == "" || strings.HasSuffix(s, ".") {
		return "", fmt.Errorf("%.80q is not the name of a host", s)
	}
	return h.Name, nil
}

// retryRandom marks a ServerHello that asks for another ClientHello (RFC 8446, 4.1.3).
var retryRandom = [...]byte{0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8,
	0x91, 0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C}

// WantsAnother says whether a record of the server's asks for another ClientHello, which has to be compared as well.
func WantsAnother(record []byte) (bool, error) {
	if len(record) < 5 || record[0] != recordHandshake {
		return false, nil
	}
	m := record[5:]
	if len(m) == 0 || m[0] != serverHello {
		return false, nil
	}
	if len(m) < 4+2+32 {
		return false, errors.New("the ServerHello is in pieces")
	}
	return bytes.Equal(m[6:38], retryRandom[:]), nil
}

// parser takes vectors with a length in front from b. Where b is too short it is bad from then on.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) skip(n int) { p.take(n) }

func (p *parser) take(n int) []byte {
	if p.bad || len(p.b) < n {
		p.bad, p.b = true, nil
		return nil
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}

func (p *parser) uint16() uint16 {
	if b := p.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (p *parser) vector(lengthBytes int) []byte {
	n := 0
	for _, c := range p.take(lengthBytes) {
		n = n<<8 | int(c)
	}
	return p.take(n)
}
