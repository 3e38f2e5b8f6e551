//go:build linux

package audit

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A record of Soon is in the file when the call returns, on disk a little later, and a disk that fails then refuses
// everything after it.
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
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	w.mu.Lock()
	if _, err := w.add(Event{Kind: KindGrant, Path: "/q"}, false); err != nil {
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

// A record of Later is in its place in the chain, in the file a little later, and before whatever is recorded after it.
func TestLater(t *testing.T) {
	var forwarded int
	w, path := newLog(t, Options{Syslog: func(l []byte) { forwarded += bytes.Count(l, []byte("\n")) }})
	lines := func() int {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("\n"))
	}
	for _, put := range []func(Event) (Event, error){w.Soon, w.Later, w.Later, w.Note} {
		if _, err := put(Event{Kind: KindGrant, Path: "/p"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := lines(); n != 5 || forwarded != 5 {
		t.Fatalf("%d lines are written and %d forwarded, want 5", n, forwarded)
	}
	if _, err := w.Later(Event{Kind: KindAllow, Path: "/p"}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); lines() != 6; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it was not written in a minute")
		}
	}
	if _, err := w.Later(Event{Kind: KindAllow, Path: "/last"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := VerifyFile(path); err != nil || !rep.Sealed || rep.LastSeq != 8 {
		t.Errorf("the log does not verify: %+v, %v", rep, err)
	}
}

// Records of Later are not lost in a new part, and a log that cannot be written refuses what follows.
func TestLaterRotates(t *testing.T) {
	w, path := newLog(t, Options{MaxBytes: 1500})
	for i := range 50 {
		put := w.Later
		if i%7 == 6 {
			put = w.Soon
		}
		if _, err := put(Event{Kind: KindAllow, Path: "/p"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := VerifyFile(path); err != nil || !rep.Sealed || rep.Parts < 3 {
		t.Errorf("the log does not verify: %+v, %v", rep, err)
	}

	w, path = newLog(t, Options{})
	if _, err := w.Later(Event{Kind: KindAllow, Path: "/p"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Soon(Event{Kind: KindGrant, Path: "/q"}); !errors.Is(err, ErrVanished) {
		t.Errorf("after the log was removed: %v, want ErrVanished", err)
	}
}
