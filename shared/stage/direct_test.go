//go:build linux

package stage

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A caller can have the helper interrupted as often as they like, by children that stop: its deadline holds.
func TestAwaitReleaseInterrupted(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, tid := unix.Getpid(), unix.Gettid()
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			default:
				_ = unix.Tgkill(pid, tid, unix.SIGURG) // the runtime takes it as one of its own
				runtime.Gosched()
			}
		}
	}()
	begun := time.Now()
	// Or this test would wait for ever.
	late := time.AfterFunc(20*time.Second, func() { unix.Shutdown(pair[1], unix.SHUT_RDWR) })
	err = awaitRelease(pair[0], begun.Add(300*time.Millisecond))
	late.Stop()
	close(over)
	<-ended
	if err != unix.ETIMEDOUT || time.Since(begun) > 15*time.Second {
		t.Errorf("%v after %v, want %v", err, time.Since(begun), unix.ETIMEDOUT)
	}
	// The control: who closes it in time is not late.
	late = time.AfterFunc(0, func() { unix.Shutdown(pair[1], unix.SHUT_RDWR) })
	defer late.Stop()
	if err := awaitRelease(pair[0], time.Now().Add(time.Minute)); err != nil {
		t.Errorf("released, and yet: %v", err)
	}
	// Nor is who was found to have closed it only after a stop of this process.
	if err := awaitRelease(pair[0], time.Now().Add(-time.Minute)); err != nil {
		t.Errorf("released before this process was stopped, and yet: %v", err)
	}
}
