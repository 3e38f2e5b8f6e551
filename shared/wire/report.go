//go:build linux

package wire

import (
	"encoding/binary"
	"golang.org/x/sys/unix"
)

// Kind is what a message of the helper says. The numbers do not meet those of process 1, which uses the
// same socket.
type Kind int64

// The kinds.
const (
	Refused   Kind = 0x100 + iota // A is the reason, B the number of the operation or field, C an errno
	Started                       // A is the pid of process 1; its pidfd comes along
	Connected                     // A is the IPv4 address of the sandbox's device
	Grouped                       // the caller is in its part of the control groups
)

// Reason is why the helper did nothing.
type Reason int64

// The reasons. Their words are sbx's; the helper sends the number.
const (
	_ Reason = iota
	NotPrivileged
	WrongCaller
	BadRequest
	BadPlan
	NotPermitted
	OrgRefuses
	OrgFile
	NotReduced
	NotStarted
	Broken
	NotConnected
	NoRoute
	NotForwarding
	NotGrouped
	TooMany
	NoSlots
	Routed
)

// What the net verb is about: its one request, and the device in the sandbox.
const (
	NetRequest = "net 1\n"
	NetDevice  = "tap0"
)

// Report is one message of the helper.
type Report struct {
	Kind    Kind
	A, B, C int64
}

// ReportSize is that of a report: its four numbers.
const ReportSize = 32

// Send writes r, with a descriptor where fd is not negative.
func (r Report) Send(sock, fd int) error {
	var b [ReportSize]byte
	for i, v := range [...]int64{int64(r.Kind), r.A, r.B, r.C} {
		binary.NativeEndian.PutUint64(b[8*i:], uint64(v))
	}
	var oob []byte
	if fd >= 0 {
		oob = unix.UnixRights(fd)
	}
	return unix.Sendmsg(sock, b[:], oob, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}
