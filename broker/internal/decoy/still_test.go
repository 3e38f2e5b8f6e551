//go:build linux

package decoy

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
)

// TestStill: what was stopped and goes on is seen, also if it is stopped again when somebody looks.
func TestStill(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 1000 & wait")
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	top := cmd.Process.Pid
	defer func() { _ = unix.Kill(-top, unix.SIGKILL); _ = cmd.Wait() }()
	for len(host.Children(top)) == 0 {
		time.Sleep(time.Millisecond)
	}
	child := host.Children(top)[0]
	until := func(state string) {
		for b := []byte(nil); !strings.Contains(string(b), ") "+state+" "); time.Sleep(time.Millisecond) {
			b, _ = os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		}
	}
	send := func(sig unix.Signal, state string) {
		if err := unix.Kill(child, sig); err != nil {
			t.Fatal(err)
		}
		until(state)
	}
	var s Still
	want := func(when string, pid int, is bool) {
		t.Helper()
		if goes, again := s.Goes(top); goes != pid || again != is {
			t.Errorf("%s: %d, %v; want %d, %v", when, goes, again, pid, is)
		}
	}
	for b := []byte(nil); !strings.HasPrefix(string(b), "sleep"); time.Sleep(time.Millisecond) {
		b, _ = os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
	}
	until("S")
	want("before it is stopped", child, false)
	send(unix.SIGSTOP, "T")
	for range 3 {
		want("stopped", 0, false)
	}
	send(unix.SIGCONT, "S")
	want("goes on", child, true)
	send(unix.SIGSTOP, "T")
	want("stopped again", child, true)
}
