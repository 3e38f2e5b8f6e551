package control

import (
	"context"
	"sync"
	"testing"
	"time"
)

// A question that comes up in the moment in which a client is told of those that are open reaches it once: a client
// that answers what it reads would be sent away for the second answer, and later questions would wait for nobody.
func TestToldOnce(t *testing.T) {
	b := newBench(t, Options{})
	var once sync.Once
	b.listing = func() { once.Do(func() { b.ask("/a/meanwhile") }) }
	b.ask("/a/before")
	c := b.dial()
	got := map[string]int{}
	ended := make(chan error, 1)
	later := make(chan struct{})
	go func() {
		ended <- c.Follow(context.Background(), func(m *Message) error {
			if m.Type == "event.fs_request" {
				if got[string(m.Path)]++; m.Path == "/a/later" {
					close(later)
				}
			}
			return nil
		})
	}()
	for b.s.Clients() == 0 || len(b.q.Pending()) < 2 {
		time.Sleep(time.Millisecond)
	}
	b.ask("/a/later")
	<-later
	b.s.Exit(0)
	b.s.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, p := range []string{"/a/before", "/a/meanwhile", "/a/later"} {
		if got[p] != 1 {
			t.Errorf("%s was told %d times", p, got[p])
		}
	}
}
