//go:build linux

package helperclient

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/wire"
)

// pair are the two ends of a socket to the helper.
func pair(t *testing.T) (ours, helpers int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return fds[0], fds[1]
}

func report(words ...int64) []byte {
	b := make([]byte, wire.ReportSize)
	for i, w := range words {
		binary.NativeEndian.PutUint64(b[8*i:], uint64(w))
	}
	return b
}

// TestAwait: an answer is the one that was waited for, a refusal in words, or an error; silence has an end.
func TestAwait(t *testing.T) {
	const want, other = wire.Kind(101), wire.Kind(102)
	for name, x := range map[string]struct {
		answer []byte
		says   string // "" is no error
	}{
		"the answer":     {report(int64(want), 7), ""},
		"another answer": {report(int64(other)), "does not know"},
		"a refusal":      {report(int64(wire.Refused), int64(wire.NoRoute)), "this host has no default route"},
		"a refusal and errno": {report(int64(wire.Refused), int64(wire.NotPermitted), 3, int64(syscall.EPERM)),
			"operation not permitted"},
		"a newer refusal":    {report(int64(wire.Refused), 1000), "does not know"},
		"a negative refusal": {report(int64(wire.Refused), -1), "does not know"},
		"a short answer":     {report(int64(want))[:8], "ended without an answer"},
		"the end":            {nil, "ended without an answer"},
	} {
		ours, helpers := pair(t)
		if x.answer == nil {
			_ = unix.Shutdown(helpers, unix.SHUT_RDWR)
		} else if _, err := unix.Write(helpers, x.answer); err != nil {
			t.Fatal(err)
		}
		r, err := Await(ours, want, time.Minute)
		switch {
		case x.says == "" && (err != nil || r.A != 7):
			t.Errorf("%s: %+v %v", name, r, err)
		case x.says != "" && (err == nil || !strings.Contains(err.Error(), x.says)):
			t.Errorf("%s: %v, want %q", name, err, x.says)
		}
	}
	ours, _ := pair(t)
	if _, err := Await(ours, want, 0); err == nil || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("silence: %v", err)
	}
	if !errors.Is(&Refusal{Reason: wire.NotPermitted, Errno: syscall.EPERM}, syscall.EPERM) {
		t.Error("a refusal does not unwrap to its errno")
	}
}

// TestReasonsHaveWords: a reason that the helper may send is not told as one of a newer version.
func TestReasonsHaveWords(t *testing.T) {
	seen := map[string]wire.Reason{}
	for r := wire.NotPrivileged; r <= wire.NoSlots; r++ {
		w := say(r)
		if was, twice := seen[w]; w == "" || strings.Contains(w, "does not know") || twice {
			t.Errorf("reason %d: %q, as %d", r, w, was)
		}
		seen[w] = r
	}
}
