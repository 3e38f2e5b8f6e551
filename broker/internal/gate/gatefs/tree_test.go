package gatefs

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTreeRefuses(t *testing.T) {
	for reason, d := range map[string]Dir{
		"clean absolute": {Path: "a"}, "host directory": {Path: "/a", Host: "b/"}, "kind Guarded": {Path: "/a",
			Judge: judgeOf()},
		"one path component": {Path: "/a", Children: []Child{{Name: "a/b"}}}, "no target": {Path: "/a",
			Children: []Child{{Name: "a", Kind: Symlink}}},
		"listed twice": {Path: "/a", Children: []Child{{Name: "a"}, {Name: "a"}}}, "opening guarded": {Path: "/a",
			Host: "/nonexistent", Kind: Guarded},
	} {
		if _, err := newServer(Tree{Dirs: []Dir{d}}, Options{}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %q", err, reason)
		}
	}
	if _, err := newServer(Tree{Dirs: []Dir{{Path: "/a"}, {Path: "/a"}}}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("twice: %v", err)
	}
}

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
