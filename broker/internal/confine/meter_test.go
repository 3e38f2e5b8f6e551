//go:build linux

package confine

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/control"
)

// A client that joins in the moment in which the meter looks whether anybody listens: the server holds its lock while
// it calls joined, so the meter must not wait for the server with its own lock held.
func TestMeterAndServerDoNotWaitForEachOther(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := control.Root(run, "", "")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMeter(nil, os.Getpid, nil)
	var server atomic.Pointer[control.Server]
	var slow atomic.Bool
	s, err := control.Listen(root, control.Info{SID: "meter-1", PID: os.Getpid()}, control.Handlers{Stats: m.Stats},
		control.Options{Joined: func() {
			if slow.Swap(false) { // long enough for the meter to look meanwhile, and to wait for this
				time.Sleep(2 * sampleEvery)
			}
			m.Joined(server.Load)
		}})
	if err != nil {
		t.Fatal(err)
	}
	server.Store(s)
	go s.Serve()
	first, err := control.Dial(root, "meter-1")
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	slow.Store(true)
	for end := time.Now().Add(time.Minute); ; {
		c, err := control.Dial(root, "meter-1")
		if err == nil {
			_, err = c.Stats()
			c.Close()
		}
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the session answers nobody any more: %v", err) // Close would wait for the same lock
		}
	}
	s.Close()
}

// TestAwake: a stop of this process is not time for which a threshold was passed.
func TestAwake(t *testing.T) {
	begin := time.Unix(1000, 0)
	clock := awake{last: begin}
	for _, c := range []struct{ at, shows time.Duration }{
		{time.Second, time.Second}, {3 * time.Second, 3 * time.Second}, {63 * time.Second, 4 * time.Second},
		{64 * time.Second, 5 * time.Second}, {164 * time.Second, 6 * time.Second},
	} {
		if got := clock.at(begin.Add(c.at)).Sub(begin); got != c.shows {
			t.Errorf("after %v the clock shows %v, want %v", c.at, got, c.shows)
		}
	}
}
