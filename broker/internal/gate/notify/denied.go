package notify

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sbx/seccompbpf"
)

// Denial is one call that the filter refuses and reports.
type Denial struct {
	PID  uint32 // of the caller, as this process knows it
	Call string // name of the system call
}

// Denials answers EPERM to every call that the listener reports, as the filter itself would have, and
// tells note which it was. It is for sandboxes without a gate and returns when no process is left.
func Denials(listener *os.File, note func(Denial)) error {
	fd := int(listener.Fd())
	var n notif
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return fmt.Errorf("waiting for refused calls: %w", err)
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			return nil
		}
		if e := receive(fd, &n); e != 0 {
			continue // the caller was killed meanwhile
		}
		note(Denial{PID: n.pid, Call: seccompbpf.Name(seccompbpf.Arch(n.arch), int(n.nr))})
		send(fd, &reply{id: n.id, errno: -int32(unix.EPERM)})
	}
}
