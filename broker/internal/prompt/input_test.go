//go:build linux

package prompt

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"
	"time"
)

// pipedConsole reads keys from one pipe and gives them to a guest at the other end of another.
func pipedConsole(t *testing.T) (c *Console, person, guest *os.File) {
	t.Helper()
	keys, person, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	guest, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{keys, person, guest, end, out} {
			f.Close()
		}
	})
	c = &Console{Keys: keys, Out: out, Guest: end}
	go c.CopyInput()
	return c, person, guest
}

// paste types what a guest would have to read, and returns what it is.
func paste(person *os.File, n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = 'a' + byte(i/7%26)
	}
	go func() { _, _ = person.Write(text) }()
	return text
}

// full waits until so much was typed that no more is read.
func (c *Console) full() {
	for {
		c.mu.Lock()
		n := len(c.typed)
		c.mu.Unlock()
		if n > maxTyped {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestKeysWaitForAGuest: what is pasted into a program that does not read for a while is all there when it does.
func TestKeysWaitForAGuest(t *testing.T) {
	c, person, guest := pipedConsole(t)
	text := paste(person, 4*maxTyped)
	c.full()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(guest, got); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the guest read other keys than were typed: %v", err)
	}
}

// TestQuestionHasKeysOfAFullGuest: a guest that reads nothing takes no key from a question, and what was typed before
// that stays the guest's.
func TestQuestionHasKeysOfAFullGuest(t *testing.T) {
	c, person, guest := pipedConsole(t)
	text := paste(person, 4*maxTyped)
	c.full()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.Hold()
	if _, err := c.ReadKey(ctx); err != nil {
		t.Fatalf("the question has no key: %v", err)
	}
	c.mu.Lock()
	n := len(c.typed)
	c.mu.Unlock()
	got := make([]byte, n)
	if _, err := io.ReadFull(guest, got); err != nil || !bytes.Equal(got, text[:n]) {
		t.Errorf("the guest read other keys than were typed: %v", err)
	}
	c.Release()
}
