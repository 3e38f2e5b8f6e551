//go:build linux

// Package inotify reads what inotify instances report, knows which of it a program has caused itself, and ends
// instances without waiting for them. It is for whoever watches something for a session, and knows nothing of sbx.
package inotify

import "golang.org/x/sys/unix"

// Close closes the instance fd by last, which is to close it and nothing else, without waiting for its end. That takes
// a grace period of the kernel's (fsnotify_destroy_group), 10 to 20 ms: longer than a whole start, and a process does
// not end before.
//
// Meanwhile fd lies in the queue of a socket that nobody has but its own queue. The kernel's collector finds it, which
// works for itself from Linux 6.10 on (unix(7), net/unix/garbage.c). On older kernels this waits as last alone would.
func Close(fd int, last func() error) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return last()
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	// Where it cannot be sent, the only price is the waiting.
	_ = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(fd, pair[1]), nil, unix.MSG_DONTWAIT)
	return last()
}
