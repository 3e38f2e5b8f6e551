//go:build linux

package notify

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/seccompbpf"
)

// Denial is one call that the filter refuses and reports.
type Denial struct {
	PID  uint32 // of the caller, as this process knows it
	Call string // name of the system call
}

// Denials answers EPERM to every call that the listener reports, as the filter itself would have, and
// tells note which it was. It is for sandboxes without a gate and returns when no process is left. What the carrier
// takes, if there is one, is no denial; one that cannot begin takes nothing.
func Denials(listener *os.File, carrier Carrier, note func(Denial)) error {
	fd := int(listener.Fd())
	var failed error
	if carrier != nil {
		if failed = carrier.Begin(); failed == nil {
			return carried(fd, carrier, note)
		}
	}
	var n notif
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if err := await(fds, -1); err != nil {
			return fmt.Errorf("waiting for refused calls: %w", err)
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			return failed
		}
		if e := receive(fd, &n); e != 0 {
			continue // the caller was killed meanwhile
		}
		deny(fd, &n, note)
	}
}

func deny(fd int, n *notif, note func(Denial)) {
	note(Denial{PID: n.pid, Call: seccompbpf.Name(seccompbpf.Arch(n.arch), int(n.nr))})
	send(fd, &reply{id: n.id, errno: -int32(unix.EPERM)})
}

// carried is Denials with a carrier. It waits in the call that receives: a poll before each would be felt.
func carried(fd int, carrier Carrier, note func(Denial)) error {
	setFlags(fd, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) // 6.6; older kernels say EINVAL and are merely slower
	c, r := Call{fd: fd}, receiver{fd: fd}
	for {
		switch e := r.next(&c.n); {
		case e == unix.EINTR:
		case e == 0 && carrier.Take(&c):
		case e == 0:
			deny(fd, &c.n, note)
		case gone(fd):
			return nil
		case e != unix.ENOENT: // the caller was killed meanwhile
			return fmt.Errorf("receiving notification: %w", e)
		}
	}
}
