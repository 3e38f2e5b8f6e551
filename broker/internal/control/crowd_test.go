//go:build linux

package control

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/prompt"
)

// 2 000 connections that say nothing: 64 are served, the older ones make room, but for the first, and none of them
// keeps anybody away who has something to say, or drives one out who had. Memory and descriptors are flat. Of clients
// that have all spoken none makes room.
func TestManyConnections(t *testing.T) {
	b := newBench(t, Options{maxClients: 64})
	answer := b.ask("/a/b/c")
	early := b.dial()
	defer early.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	open := func(say string) int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: b.sock()}); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(fd, []byte(say)); err != nil && err != unix.EPIPE {
			t.Fatal(err)
		}
		return fd
	}
	told := func(fd int) string { // what it was told before the end; only of one that was sent away
		var out strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := unix.Read(fd, buf)
			if n <= 0 || err != nil {
				return out.String()
			}
			out.Write(buf[:n])
		}
	}
	var fds []int
	for range 2000 {
		fds = append(fds, open(""))
	}
	late := b.dial() // is let in, however many there are
	defer late.Close()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := b.s.Clients(); n != 64 {
		t.Errorf("%d clients", n)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("heap grew by %d bytes", grown)
	}
	const spared = 64 / sparedShare
	for _, fd := range fds[spared : 2000-64] {
		if out := told(fd); !strings.Contains(out, `"busy"`) {
			t.Fatalf("an old silent client: %q", out)
		}
	}
	for _, fd := range fds[:spared] {
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		if out := told(fd); strings.Contains(out, `"busy"`) || !strings.Contains(out, "hello") {
			t.Errorf("one that was silent before the crowd came: %q", out)
		}
		if _, err := unix.Write(fd, []byte(`{"type":"hello","version":1}`+"\n")); err != nil {
			t.Errorf("one that was silent before the crowd came cannot speak: %v", err)
		}
	}
	if qs, err := early.Pending(); err != nil || len(qs) != 1 {
		t.Fatalf("who spoke before: %v, %v", qs, err)
	}
	if err := late.Approve(b.q.Pending()[0].ID, prompt.Answer{}); err != nil || !(<-answer).Allow {
		t.Fatalf("who came last: %v", err)
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	for i := 0; b.s.Clients() > 2; i++ {
		if i > 6000 {
			t.Fatalf("%d clients are left", b.s.Clients())
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 62 {
		c := b.dial()
		defer c.Close()
	}
	waitHeard(t, b, 64)
	fd := open("")
	defer unix.Close(fd)
	if out := told(fd); !strings.Contains(out, `"busy"`) || strings.Contains(out, "hello") {
		t.Errorf("one too many: %q", out)
	}
	states, err := States(b.root)
	if err != nil || len(states) != 1 || states[0].Err == nil ||
		!strings.Contains(states[0].Err.Error(), "64 clients are connected") {
		t.Errorf("a session that takes nobody more: %+v, %v", states, err)
	}
	if _, _, err := Find(b.root, "0123"); err == nil || !strings.Contains(err.Error(), "could not be asked") {
		t.Errorf("a question of such a session: %v", err)
	}
}

// waitHeard waits until the server has read a line of n clients.
func waitHeard(t *testing.T, b *bench, n int) {
	t.Helper()
	for i := 0; ; i++ {
		b.s.mu.Lock()
		heard := 0
		for c := range b.s.conns {
			if c.heard.Load() {
				heard++
			}
		}
		b.s.mu.Unlock()
		if heard == n {
			return
		}
		if i > 6000 {
			t.Fatalf("%d of %d were heard", heard, n)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestClosingServerIsGone: a session that ends while somebody connects is one that has ended, and not one that takes
// nobody more.
func TestClosingServerIsGone(t *testing.T) {
	b := newBench(t, Options{})
	closed := func(is bool) {
		b.s.mu.Lock()
		b.s.closed = is
		b.s.mu.Unlock()
	}
	closed(true)
	states, err := States(b.root)
	closed(false)
	if err != nil || len(states) != 0 {
		t.Errorf("%+v, %v", states, err)
	}
	if states, err = States(b.root); err != nil || len(states) != 1 || states[0].Err != nil { // the control
		t.Errorf("a session that goes on: %+v, %v", states, err)
	}
}
