//go:build linux

package wire

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Version changes with every change of this package, of the plan, of the tape's instructions and of its messages. (And
// in network_veth_killed.txtar.)
const Version = 5

// FD is the helper's descriptor of the socket. It is 0 because that is the one that sudo passes on.
const FD = 0

// A request is a header, which has the descriptors with it: four numbers, little-endian, which are Magic, Version, and
// how many bytes and descriptors there are. The bytes follow in pieces.
const (
	Magic      = 0x31786273 // "sbx1"
	HeaderSize = 16
	Chunk      = 32 << 10 // of a piece; fits any socket buffer
	maxFds     = 4
)

// ErrRequest is returned for everything that is not one well-formed request.
var ErrRequest = errors.New("not a request")

// Receive reads one request of at most max bytes and at most four descriptors. The sender has until
// the deadline for all of it. What came before it fails stays open: who receives ends then.
func Receive(sock, max int, deadline time.Time) (body []byte, fds []int, err error) {
	var h [HeaderSize + 1]byte
	n, fds, err := receive(sock, h[:], deadline)
	if err != nil {
		return nil, nil, err
	}
	word := func(i int) int { return int(binary.LittleEndian.Uint32(h[4*i:])) }
	size := word(2)
	if n != HeaderSize || word(0) != Magic || word(1) != Version || size == 0 || size > max || word(3) != len(fds) {
		return nil, nil, ErrRequest
	}
	for len(body) < size {
		piece := make([]byte, min(size-len(body), Chunk)+1) // a longer message shows
		n, more, err := receive(sock, piece, deadline)
		if err != nil {
			return nil, nil, err
		}
		if n == 0 || n == len(piece) || len(more) > 0 {
			return nil, nil, ErrRequest
		}
		body = append(body, piece[:n]...)
	}
	return body, fds, nil
}

// receive reads one message with what descriptors came along.
func receive(sock int, buf []byte, deadline time.Time) (int, []int, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxFds))
	for {
		left := max(int(time.Until(deadline).Milliseconds()), 0)
		poll := []unix.PollFd{{Fd: int32(sock), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, left); err != nil && err != unix.EINTR {
			return 0, nil, err
		}
		n, on, flags, _, err := unix.Recvmsg(sock, buf, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EAGAIN && left == 0: // also whoever was stopped meanwhile has looked once more
			return 0, nil, unix.ETIMEDOUT
		case err == unix.EAGAIN || err == unix.EINTR:
			continue
		case err != nil:
			return 0, nil, err
		case flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0:
			return 0, nil, ErrRequest
		case on == 0:
			return n, nil, nil
		}
		messages, err := unix.ParseSocketControlMessage(oob[:on])
		if err != nil || len(messages) != 1 { // other kinds of control message are not wanted
			return 0, nil, ErrRequest
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		return n, fds, err
	}
}
