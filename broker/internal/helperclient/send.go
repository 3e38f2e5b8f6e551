//go:build linux

package helperclient

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/wire"
)

// Send writes one request: a header with the descriptors, then the body in pieces.
func Send(sock int, body []byte, fds []int) error {
	var h [wire.HeaderSize]byte
	binary.LittleEndian.PutUint32(h[0:], wire.Magic)
	binary.LittleEndian.PutUint32(h[4:], wire.Version)
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
		n := min(len(body), wire.Chunk)
		if err := unix.Sendmsg(sock, body[:n], nil, nil, unix.MSG_NOSIGNAL); err != nil {
			return fmt.Errorf("sending to the helper: %w", err)
		}
		body = body[n:]
	}
	return nil
}
