//go:build linux

package notify

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A refusal stands for the same call of the same thread, for a moment, and for nothing else.
func TestRefusals(t *testing.T) {
	var x refusals
	n := &notif{pid: 7, nr: 257}
	x.add(n, 1, []byte("/a\x00"), unix.ENOENT)
	if e, ok := x.holds(n, 1, []byte("/a\x00")); !ok || e != unix.ENOENT {
		t.Errorf("the same call: %v, %v", e, ok)
	}
	for what, hit := range map[string]bool{
		"another thread": second(x.holds(&notif{pid: 8, nr: 257}, 1, []byte("/a\x00"))),
		"another call":   second(x.holds(&notif{pid: 7, nr: 2}, 1, []byte("/a\x00"))),
		"other flags":    second(x.holds(n, 2, []byte("/a\x00"))),
		"another name":   second(x.holds(n, 1, []byte("/b\x00"))),
		"no name":        second(x.holds(n, 1, nil)),
	} {
		if hit {
			t.Errorf("%s is refused as well", what)
		}
	}
	for k, r := range x.held {
		r.until = time.Now()
		x.held[k] = r
	}
	if second(x.holds(n, 1, []byte("/a\x00"))) {
		t.Error("it stands for ever")
	}
	for i := range 3 * maxRefusals {
		x.add(n, 1, strconv.AppendInt(nil, int64(i), 10), 0)
	}
	if len(x.held) > maxRefusals {
		t.Errorf("%d are kept", len(x.held))
	}
}

func second[T any](_ T, ok bool) bool { return ok }
