package control

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// End kills a process and waits until it and its children are gone: of a broker, its sandbox, whose first process ends
// after all others in it. left are those that are there when the patience ends.
func End(pid int, children []int, patience time.Duration) (left []int, err error) {
	waited := map[int]int32{} // by pid, what stands for the process
	defer func() {
		for _, fd := range waited {
			unix.Close(int(fd))
		}
	}()
	for _, p := range append([]int{pid}, children...) {
		fd, err := unix.PidfdOpen(p, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return nil, err
		}
		waited[p] = int32(fd)
	}
	broker, there := waited[pid]
	if !there {
		return nil, nil
	}
	if err := unix.PidfdSendSignal(int(broker), unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return nil, err
	}
	until := time.Now().Add(patience)
	for p, fd := range waited {
		if !ended(fd, until) {
			left = append(left, p)
		}
	}
	return left, nil
}

// ended waits until a process has ended, also one that nobody has asked about yet.
func ended(pidfd int32, until time.Time) bool {
	for {
		list := []unix.PollFd{{Fd: pidfd, Events: unix.POLLIN}}
		n, err := unix.Poll(list, int(max(0, time.Until(until).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}
