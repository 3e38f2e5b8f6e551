package wire

import (
	"encoding/binary"
	"syscall"

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
)

// What the net verb is about: its one request, and the device in the sandbox.
const (
	NetRequest = "net 1\n"
	NetDevice  = "tap0"
)

// words, in the order of the reasons.
var words = [...]string{"", "it is installed without privilege, or no_new_privs is set", "its caller is not who made the request",
	"the request is malformed, or of another version of sbx", "the plan is not valid", "it does not do this for anybody",
	"/etc/sbx/helper.toml does not permit it", "/etc/sbx/helper.toml cannot be relied on", "it could not give up its privileges", "the sandbox's first process could not be made",
	"a flaw in the helper itself", "the network device could not be made", "this host has no default route", "this host does not forward packets (net.ipv4.ip_forward is 0)"}

func (r Reason) String() string {
	if r > 0 && int(r) < len(words) {
		return words[r]
	}
	return "for a reason that this version of sbx does not know"
}

// Report is one message of the helper.
type Report struct {
	Kind    Kind
	A, B, C int64
}

const reportSize = 32

// Send writes r, with a descriptor where fd is not negative.
func (r Report) Send(sock, fd int) error {
	var b [reportSize]byte
	for i, v := range [...]int64{int64(r.Kind), r.A, r.B, r.C} {
		binary.NativeEndian.PutUint64(b[8*i:], uint64(v))
	}
	var oob []byte
	if fd >= 0 {
		oob = unix.UnixRights(fd)
	}
	return unix.Sendmsg(sock, b[:], oob, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}

// Refusal is a refusal of the helper as an error.
type Refusal struct {
	Reason Reason
	Where  int64 // number of the plan's operation, or of the rule; see the helper's table
	Errno  syscall.Errno
}

func (r *Refusal) Error() string {
	s := "sbx-helper refuses: " + r.Reason.String()
	if r.Errno != 0 {
		s += ": " + r.Errno.Error()
	}
	return s
}

func (r *Refusal) Unwrap() error {
	if r.Errno == 0 {
		return nil
	}
	return r.Errno
}
