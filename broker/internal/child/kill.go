//go:build linux

package child

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
)

// Abort ends process 1 before its program runs. What a helper clones cannot be killed as long as it has privileges, or
// before it is known, but it notices this.
func (c *Child) Abort() {
	if c.parent != nil {
		_ = unix.Shutdown(c.sock, unix.SHUT_RDWR)
	}
	c.SendKill()
}

// SendKill ends every process of the sandbox, without waiting.
func (c *Child) SendKill() {
	if c.plan != nil && c.plan.InPlace != nil { // process 1 ends the others when nobody is there any more
		_ = unix.Shutdown(c.sock, unix.SHUT_RDWR)
		return
	}
	c.SendSignal(unix.SIGKILL)
}

// Kill ends every process of the sandbox and waits until the last is gone.
func (c *Child) Kill() {
	if c.Abort(); c.PID == 0 || c.Gone() {
		return
	}
	if c.Pidfd >= 0 && !endsWithin(c.Pidfd, c.dieWithin()) {
		c.control.Last.Left = 1
		c.gone.Store(true)
		c.endOrphans()
		return
	}
	_, _ = c.reapInit()
	c.endOrphans()
}

// endsWithin waits for a process and all of its PID namespace: who waits for a file system that does not answer dies
// only when that does.
func endsWithin(pidfd int, d time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for end := time.Now().Add(d); ; {
		n, err := unix.Poll(fds, int(time.Until(end).Milliseconds())+1)
		if err != unix.EINTR {
			return err != nil || n > 0
		}
	}
}

// Signal sends sig to the process pid as seen inside, or to the process group -pid.
func (c *Child) Signal(pid int, sig syscall.Signal) error {
	m := stage.Message{Kind: stage.CmdKill, PID: int64(pid), Value: int64(sig)}
	return unix.Sendto(c.sock, m.Encode(), unix.MSG_NOSIGNAL, nil)
}

// Foreground makes the process group, as seen inside, the foreground of the sandbox's terminal tty, which is open here.
func (c *Child) Foreground(group, tty int) error {
	m := stage.Message{Kind: stage.CmdForeground, PID: int64(group)}
	return unix.Sendmsg(c.sock, m.Encode(), unix.UnixRights(tty), nil, unix.MSG_NOSIGNAL)
}

// SendSignal sends sig to process 1.
func (c *Child) SendSignal(sig syscall.Signal) {
	if c.Pidfd >= 0 {
		_ = unix.PidfdSendSignal(c.Pidfd, sig, nil, 0)
	}
}
