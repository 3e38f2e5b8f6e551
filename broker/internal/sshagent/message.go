//go:build linux

package sshagent

import (
	"encoding/binary"
	"errors"
	"io"
)

// Numbers of the protocol (draft-ietf-sshm-ssh-agent, sections 5 and 6).
const (
	msgFailure           = 5
	msgRequestIdentities = 11
	msgIdentitiesAnswer  = 12
	msgSignRequest       = 13
	msgSignResponse      = 14
	msgExtension         = 27
)

// maxMessage is the largest message that is passed on in bytes; OpenSSH's agent has the same bound.
const maxMessage = 256 << 10

var (
	errLong  = errors.New("message is longer than 256 KiB")
	errShape = errors.New("message does not have the form of its type")
)

// readMessage reads one message: four bytes of length, then the type and what belongs to it.
func readMessage(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxMessage {
		return nil, errLong
	}
	m := make([]byte, n)
	_, err := io.ReadFull(r, m)
	return m, err
}

func writeMessage(w io.Writer, m []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(m)), uint32(len(m))), m...))
	return err
}

// cutString takes a string, four bytes of length and its bytes, off the front.
func cutString(b []byte) (s, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n], b[4+n:], true
}

func appendString(b, s []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// signRequest is the message with which a client asks for a signature.
type signRequest struct {
	key, data []byte
	flags     uint32
}

func parseSign(m []byte) (r signRequest, err error) {
	rest := m[1:]
	var ok1, ok2 bool
	r.key, rest, ok1 = cutString(rest)
	if ok1 {
		r.data, rest, ok2 = cutString(rest)
	}
	if !ok2 || len(rest) != 4 {
		return r, errShape
	}
	r.flags = binary.BigEndian.Uint32(rest)
	return r, nil
}

func (r signRequest) bytes() []byte {
	b := appendString([]byte{msgSignRequest}, r.key)
	b = appendString(b, r.data)
	return binary.BigEndian.AppendUint32(b, r.flags)
}

// identity is one key in the agent's answer.
type identity struct{ key, comment []byte }

func parseIdentities(m []byte) ([]identity, error) {
	if len(m) < 5 || m[0] != msgIdentitiesAnswer {
		return nil, errShape
	}
	n, rest := binary.BigEndian.Uint32(m[1:]), m[5:]
	var out []identity
	for range n {
		var id identity
		var ok bool
		if id.key, rest, ok = cutString(rest); !ok {
			return nil, errShape
		}
		if id.comment, rest, ok = cutString(rest); !ok {
			return nil, errShape
		}
		out = append(out, id)
	}
	if len(rest) != 0 {
		return nil, errShape
	}
	return out, nil
}

func identitiesAnswer(ids []identity) []byte {
	b := binary.BigEndian.AppendUint32([]byte{msgIdentitiesAnswer}, uint32(len(ids)))
	for _, id := range ids {
		b = appendString(appendString(b, id.key), id.comment)
	}
	return b
}

// signedMessage is what is signed for a file rather than a login (OpenSSH, PROTOCOL.sshsig, section 3).
type signedMessage struct {
	Namespace string
	Hash      string // sha256 or sha512
	Sum       []byte // of the message
}

// parseSSHSIG reads the data of a signature request; ok is false if it is of another kind, a login for instance.
func parseSSHSIG(data []byte) (s signedMessage, ok bool) {
	const magic = "SSHSIG"
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return s, false
	}
	namespace, rest, ok1 := cutString(data[len(magic):])
	reserved, rest, ok2 := cutString(rest)
	hash, rest, ok3 := cutString(rest)
	sum, rest, ok4 := cutString(rest)
	if !ok1 || !ok2 || !ok3 || !ok4 || len(rest) != 0 || len(reserved) != 0 {
		return s, false
	}
	s = signedMessage{string(namespace), string(hash), sum}
	switch s.Hash {
	case "sha256":
		return s, len(sum) == 32
	case "sha512":
		return s, len(sum) == 64
	}
	return s, false
}
