//go:build linux

package wire

import (
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReceiveLate: whoever was stopped beyond the deadline takes what has come in time.
func TestReceiveLate(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	late := time.Now().Add(-time.Minute)
	if _, _, err := Receive(pair[0], 100, late); err != unix.ETIMEDOUT {
		t.Errorf("nothing has come: %v", err)
	}
	var head []byte
	for _, n := range []uint32{Magic, Version, 4, 0} {
		head = binary.LittleEndian.AppendUint32(head, n)
	}
	for _, b := range [][]byte{head, []byte("body")} {
		if err := unix.Sendto(pair[1], b, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if body, _, err := Receive(pair[0], 100, late); err != nil || string(body) != "body" {
		t.Errorf("%q, %v", body, err)
	}
}
