package stage

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func usualEarly(t *testing.T) *Early {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	e, err := Prepare(smallest("/usr/bin/true").Namespaces)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEarlyIsUsedWhereItSuits(t *testing.T) {
	e := usualEarly(t)
	pid := e.pid
	c, err := Start(smallest("/usr/bin/true"), Stdio{-1, 1, 2}, Hooks{}, e)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer c.Kill()
	if c.PID != pid {
		t.Errorf("process 1 is %d, want the early one, %d", c.PID, pid)
	}
}

// A second try comes with what the first one has ended: its memory is gone.
func TestEndedEarlyIsLeftAlone(t *testing.T) {
	e := usualEarly(t)
	e.End()
	e.Spread()
	e.End()
	c, err := Start(smallest("/usr/bin/true"), Stdio{-1, 1, 2}, Hooks{}, e)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer c.Kill()
	if ev, err := c.Next(); err != nil || ev.Status.ExitStatus() != 0 {
		t.Errorf("%+v, %v", ev, err)
	}
}

func TestEarlyOfOtherNamespacesIsEnded(t *testing.T) {
	e := usualEarly(t)
	pid := e.pid
	p := smallest("/usr/bin/readlink", "/proc/self/ns/net")
	p.Namespaces.Net, p.Loopback = false, false
	c, err := Start(p, Stdio{-1, 1, 2}, Hooks{}, e)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer c.Kill()
	if c.PID == pid || unix.Kill(pid, 0) != unix.ESRCH {
		t.Errorf("process 1 is %d; the one that did not suit, %d, must be gone", c.PID, pid)
	}
}

func TestEarlyNobodyWantsEndsWithItsParent(t *testing.T) {
	e := usualEarly(t)
	unix.Close(e.sock) // what the kernel does with a parent's
	deadline := time.Now().Add(20 * time.Second)
	for {
		if pid, err := syscall.Wait4(e.pid, nil, syscall.WNOHANG, nil); pid == e.pid || err != nil && err != syscall.EINTR {
			return
		}
		if time.Now().After(deadline) {
			e.End()
			t.Fatal("process 1 lives on without a parent")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestEarlyDoesNotTakeOtherDescriptors(t *testing.T) {
	e := usualEarly(t)
	defer e.End()
	f, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if p := smallest("/usr/bin/true"); e.suits(p, Stdio{int(f.Fd()), 1, 2}) || !e.suits(p, Stdio{-1, 1, 2}) {
		t.Error("a descriptor that was opened after the clone does not exist in process 1")
	}
}
