//go:build linux

package helperclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/wire"
)

// words, in the order of the reasons.
var words = [...]string{"", "it is installed without privilege, or no_new_privs is set",
	"its caller is not who made the request",
	"the request is malformed, or of another version of sbx", "the plan is not valid", "it does not do this for anybody",
	"/etc/sbx/helper.toml does not permit it", "/etc/sbx/helper.toml cannot be relied on",
	"it could not give up its privileges", "the sandbox's first process could not be made",
	"a flaw in the helper itself", "the network device could not be made", "this host has no default route",
	"this host does not forward packets (net.ipv4.ip_forward is 0)",
	"control groups could not be prepared", "its caller has as many of its processes or devices as one may have: end some",
	"it cannot count what its caller has, in /run/sbx-helper",
	"a route of this host's leads to the addresses that it gives (veth_range in /etc/sbx/helper.toml): name others there"}

// say words a reason. It is no method, which shared/wire would have to hold.
func say(r wire.Reason) string {
	if r > 0 && int(r) < len(words) {
		return words[r]
	}
	return "for a reason that this version of sbx does not know"
}

// Refusal is a refusal of the helper as an error.
type Refusal struct {
	Reason wire.Reason
	Where  int64 // number of the plan's operation, or of the rule; see the helper's table
	Errno  syscall.Errno
}

func (r *Refusal) Error() string {
	s := "sbx-helper refuses: " + say(r.Reason)
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

// Await reads the helper's answer, which is of that kind or an error; a refusal is a *Refusal.
func Await(sock int, want wire.Kind, patience time.Duration) (wire.Report, error) {
	patience = max(patience, time.Millisecond) // 0 would be for ever
	tv := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return wire.Report{}, err
	}
	var b [wire.ReportSize]byte
	n, err := unix.Read(sock, b[:])
	for err == unix.EINTR {
		n, err = unix.Read(sock, b[:])
	}
	switch {
	case err == unix.EAGAIN:
		return wire.Report{}, fmt.Errorf("sbx-helper gave no answer within %v", patience)
	case err != nil || n != len(b):
		return wire.Report{}, errors.Join(errors.New("sbx-helper ended without an answer"), err)
	}
	word := func(i int) int64 { return int64(binary.NativeEndian.Uint64(b[8*i:])) }
	r := wire.Report{Kind: wire.Kind(word(0)), A: word(1), B: word(2), C: word(3)}
	switch r.Kind {
	case wire.Refused:
		return r, &Refusal{Reason: wire.Reason(r.A), Where: r.B, Errno: syscall.Errno(r.C)}
	case want:
		return r, nil
	}
	return r, errors.New("sbx-helper gave an answer that this version of sbx does not know")
}
