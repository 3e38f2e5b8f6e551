//go:build linux

package network

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// No more is open at once than mostOpen: each costs the kernel memory, and programs inside have it opened.
func TestOpenedIsBounded(t *testing.T) {
	at := netip.MustParseAddrPort("192.0.2.1:80")
	one := single(asked, at)
	now := time.Now()
	full := func(life time.Duration) *rules {
		r := &rules{open: map[string]time.Time{one.set + string(one.key): now.Add(life)}}
		for i := 1; i < mostOpen; i++ {
			r.open[fmt.Sprint(i)] = now.Add(life)
		}
		return r
	}
	other := single(asked, netip.MustParseAddrPort("192.0.2.1:81"))
	if err := full(time.Hour).put([]element{other}, time.Hour); err != errFull {
		t.Errorf("one more was opened: %v", err)
	}
	// the controls: what is open already is opened for longer, and what is over makes room
	if err := full(time.Hour).room([]element{one}, now); err != nil {
		t.Errorf("what is open already: %v", err)
	}
	if r := full(-time.Second); r.room([]element{other}, now) != nil || len(r.open) != 0 {
		t.Errorf("%d that are over leave no room", len(r.open))
	}
}
