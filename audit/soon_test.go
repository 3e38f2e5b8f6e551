package audit

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A record of Soon is in the file when the call returns, on disk a little later, and a disk that fails then refuses everything after it.
func TestSoon(t *testing.T) {
	w, path := newLog(t, Options{})
	for range 3 {
		if _, err := w.Soon(Event{Kind: KindGrant, Path: "/p"}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil || bytes.Count(b, []byte("\n")) != 4 {
		t.Fatalf("%d lines are written (%v), want 4", bytes.Count(b, []byte("\n")), err)
	}
	synced := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.synced == 4 && !w.soon
	}
	for end := time.Now().Add(time.Minute); !synced(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was put on disk in a minute")
		}
	}

	var pipe [2]int // whose sync fails
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	w.mu.Lock()
	if _, err := w.append(Event{Kind: KindGrant, Path: "/q"}); err != nil {
		t.Fatal(err)
	}
	log := w.fd
	w.fd = pipe[1]
	w.mu.Unlock()
	w.catchUp()
	unix.Close(log)
	if _, err := w.Soon(Event{Kind: KindGrant, Path: "/r"}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("after a failed sync: %v, want EINVAL", err)
	}
}
