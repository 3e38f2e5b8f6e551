//go:build linux

package control

import (
	"context"
	"sync"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/prompt"
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

// TestLastAnswerIsTold: an answer that lets a session end is told to whoever gave it, though the end comes first.
func TestLastAnswerIsTold(t *testing.T) {
	b := newBench(t, Options{})
	wait := b.ask("/a/b")
	over := func() {
		<-wait
		go b.s.Close()
		for closed := false; !closed; {
			b.s.mu.Lock()
			closed = b.s.closed
			b.s.mu.Unlock()
		}
	}
	b.answered.Store(&over)
	c := b.dial()
	qs, err := c.Pending()
	if err != nil || len(qs) != 1 {
		t.Fatalf("%+v, %v", qs, err)
	}
	if err := c.Approve(qs[0].ID, prompt.Answer{}); err != nil {
		t.Errorf("the answer was carried out, and is told as %v", err)
	}
}
