//go:build linux

package tools

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"sbx.example/sbx/broker/plan"
)

// Socket is where the broker listens, inside.
const Socket = "/run/sbx/tools"

// What is said on a connection, which is one call's: frames of a kind, a length and as many bytes. Input is sent in
// pieces, each when one is wanted, so that whoever listens for the caller's end never waits for the tool.
const (
	frameCall   = 'c' // from the caller, first and once
	frameInput  = 'i' // from the caller: a piece, and an empty one at the end
	frameWants  = 'w' // from the broker: the next piece is wanted
	frameOutput = 'o' // from the broker
	frameErrors = 'e' // from the broker
	frameEnd    = 'x' // from the broker, last
)

const (
	maxPiece = 64 << 10
	// ahead is how many pieces are wanted at a time.
	ahead   = 8
	maxCall = 256 << 10
)

// said is the call as its caller says it.
type said struct {
	Tool string       `json:"tool"`
	Args []plan.Bytes `json:"args"`
	Cwd  plan.Bytes   `json:"cwd"`
}

// End is how a call ended: with the tool's exit status, or because of what Message says.
type End struct {
	Status  int        `json:"status"`
	Message plan.Bytes `json:"message,omitempty"`
}

// writeFrame sends one.
func writeFrame(w io.Writer, kind byte, data []byte) error {
	head := [5]byte{kind}
	binary.BigEndian.PutUint32(head[1:], uint32(len(data)))
	_, err := (&net.Buffers{head[:], data}).WriteTo(w)
	return err
}

// readFrame reads one of at most most bytes, into room if that is large enough. io.EOF is the other side's end.
func readFrame(r io.Reader, most int, room []byte) (kind byte, data []byte, err error) {
	var head [5]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if uint64(n) > uint64(most) {
		return 0, nil, fmt.Errorf("a frame of %d bytes is longer than %d", n, most)
	}
	if data = room; uint64(n) > uint64(cap(room)) {
		data = make([]byte, n)
	}
	data = data[:n]
	_, err = io.ReadFull(r, data)
	return head[0], data, err
}
