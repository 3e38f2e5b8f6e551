//go:build linux

package grants

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func FuzzKillPending(f *testing.F) {
	f.Add("Name:\tx\nSigPnd:\t0000000000000100\nShdPnd:\t0\n")
	f.Fuzz(func(t *testing.T, s string) { killPending(s) })
}

func TestKillPending(t *testing.T) {
	for s, want := range map[string]bool{
		"SigPnd:\t0000000000000100\n": true, "ShdPnd:\t0000000000000100\n": true,
		"SigPnd:\t0000000000000200\nShdPnd:\t0\n": false,
		"SigBlk:\t0000000000000100\n":             false, "": false, "SigPnd:\tx": false,
	} {
		if killPending(s) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
	if killed(uint32(unix.Getpid())) || !killed(0) {
		t.Error("the test is killed, or process 0 is not")
	}
}

// TestKilledIsSeen: that a process cannot be looked at, for want of descriptors, is no sign that it was killed.
func TestKilledIsSeen(t *testing.T) {
	for err, want := range map[error]bool{unix.EMFILE: false, unix.ENFILE: false, unix.ENOMEM: false, nil: false,
		&os.PathError{Op: "open", Path: "/proc/1/status", Err: unix.ENOENT}: true, unix.ESRCH: true} {
		if gone(err) != want {
			t.Errorf("%v: gone %t", err, !want)
		}
	}
	if killed(uint32(os.Getpid())) || !killed(1<<31) {
		t.Error("who lives is told from who is gone")
	}
}
