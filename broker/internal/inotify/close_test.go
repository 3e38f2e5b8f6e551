//go:build linux

package inotify

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCloseLeavesNoDescriptor(t *testing.T) {
	before := descriptors(t)
	for _, want := range []error{nil, errors.New("from last")} {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.InotifyAddWatch(fd, t.TempDir(), unix.IN_CREATE); err != nil {
			t.Fatal(err)
		}
		got := Close(fd, func() error { return errors.Join(unix.Close(fd), want) })
		if !errors.Is(got, want) {
			t.Errorf("Close returned %v, want what last returned: %v", got, want)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
			t.Errorf("the descriptor is still open: %v", err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
