//go:build linux

package child

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
	"sbx.example/sbx/shared/wire"
)

// Within is the life of process 1 where bubblewrap has made the namespaces: it has a process of its own do what the
// broker has written down, and ends with it, and with it everything inside. It is never traced, and has no privilege.
func Within() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping other programs from tracing process 1: %w", err)
	}
	_, _, errno := syscall.RawSyscall6(unix.SYS_MMAP, stage.TailAt, stage.TailSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE|unix.MAP_NORESERVE, WithinTail, 0)
	if errno != 0 {
		return fmt.Errorf("mapping what is to be done: %w", errno)
	}
	c, err := tape.Map[stage.Control](unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	if err = receiveStdio(); err != nil {
		return fmt.Errorf("taking the program's descriptors: %w", err)
	}
	c.Init()
	c.Announce, c.ExitWithMain = 1, 1
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("opening pidfd: %w", err)
	}
	if err = (wire.Report{Kind: wire.Started, A: 1}).Send(WithinSock, pidfd); err != nil {
		return fmt.Errorf("telling the broker: %w", err)
	}
	syscall.ForkLock.Lock()
	pid, errno := forkWithin(c)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return fmt.Errorf("cloning: %w", errno)
	}
	signal.Notify(make(chan os.Signal, 1)) // to whoever is inside: nothing ends process 1
	// Whoever reads the other end of what was handed over hears of its end from the program alone.
	for fd := range withinStdio + 3 {
		unix.Close(fd)
	}
	for {
		if got, err := unix.Wait4(-1, nil, 0, nil); err != unix.EINTR && (err != nil || got == int(pid)) {
			return err
		}
	}
}

// receiveStdio takes the program's descriptors to where the tape expects them.
func receiveStdio() error {
	oob := make([]byte, unix.CmsgSpace(3*4))
	_, n, _, _, err := unix.Recvmsg(WithinSock, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return unix.EBADMSG
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 3 {
		return unix.EBADMSG
	}
	for i, fd := range fds {
		if err = unix.Dup3(fd, withinStdio+i, unix.O_CLOEXEC); err != nil {
			return err
		}
		unix.Close(fd)
	}
	return closeOnExec()
}

// closeOnExec keeps whatever was open in who has called sbx from the program, also without close_range(2).
func closeOnExec() error {
	list, err := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// forkWithin never returns in the child.
//
//go:noinline
//go:nosplit
//go:norace
func forkWithin(c *stage.Control) (pid uintptr, errno syscall.Errno) {
	pid, e := tape.Fork(0)
	if e != 0 || pid != 0 {
		return pid, syscall.Errno(e)
	}
	stage.AfterLeave((*stage.Tail)(tape.Address(stage.TailAt)), c)
	return 0, 0
}
