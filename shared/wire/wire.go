package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Version changes with every change of this package, of the plan, of the tape's instructions and of its messages. (And in network_veth_killed.txtar.)
const Version = 5

// FD is the helper's descriptor of the socket. It is 0 because that is the one that sudo passes on.
const FD = 0

const (
	magic      = 0x31786273 // "sbx1"
	headerSize = 16
	chunk      = 32 << 10 // fits any socket buffer
	maxFds     = 4
)

// ErrRequest is returned for everything that is not one well-formed request.
var ErrRequest = errors.New("not a request")

// Send writes one request: a header with the descriptors, then the body in pieces.
func Send(sock int, body []byte, fds []int) error {
	var h [headerSize]byte
	binary.LittleEndian.PutUint32(h[0:], magic)
	binary.LittleEndian.PutUint32(h[4:], Version)
	binary.LittleEndian.PutUint32(h[8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(fds)))
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(sock, h[:], rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("sending to the helper: %w", err)
	}
	for len(body) > 0 {
		n := min(len(body), chunk)
		if err := unix.Sendmsg(sock, body[:n], nil, nil, unix.MSG_NOSIGNAL); err != nil {
			return fmt.Errorf("sending to the helper: %w", err)
		}
		body = body[n:]
	}
	return nil
}

// Receive reads one request of at most max bytes and at most four descriptors. The sender has until
// the deadline for all of it. What came before it fails stays open: who receives ends then.
func Receive(sock, max int, deadline time.Time) (body []byte, fds []int, err error) {
	var h [headerSize + 1]byte
	n, fds, err := receive(sock, h[:], deadline)
	if err != nil {
		return nil, nil, err
	}
	word := func(i int) int { return int(binary.LittleEndian.Uint32(h[4*i:])) }
	size := word(2)
	if n != headerSize || word(0) != magic || word(1) != Version || size == 0 || size > max || word(3) != len(fds) {
		return nil, nil, ErrRequest
	}
	for len(body) < size {
		piece := make([]byte, min(size-len(body), chunk)+1) // a longer message shows
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
		left := int(time.Until(deadline).Milliseconds())
		if left <= 0 {
			return 0, nil, unix.ETIMEDOUT
		}
		poll := []unix.PollFd{{Fd: int32(sock), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, left); err != nil && err != unix.EINTR {
			return 0, nil, err
		}
		n, on, flags, _, err := unix.Recvmsg(sock, buf, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		switch {
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
