//go:build linux

package vm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTidy: only kernels of other recipes go, and only if nobody has used them for a day.
func TestTidy(t *testing.T) {
	cache, old := t.TempDir(), time.Now().Add(-25*time.Hour)
	for _, name := range []string{oldest, newest, oldest + "-00000001", newest + "-00000002", newest + "-00000001.77",
		oldest + "-00000003.recent", "photos", oldest + "-photos", oldest + "-00000004"} {
		dir := filepath.Join(cache, strings.TrimSuffix(name, ".recent"))
		if err := os.MkdirAll(filepath.Join(dir, "root/boot"), 0o755); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, ".recent") {
			if err := os.Chtimes(dir, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	tidy(cache, "00000004")
	var left []string
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got, want := strings.Join(left, " "), oldest+"-00000003 "+oldest+"-00000004 "+oldest+"-photos photos"; got != want {
		t.Errorf("left: %s\nwant: %s", got, want)
	}
}

// TestWatch: a machine that says nothing is ended and it is said why; one that goes on talking is not.
func TestWatch(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	silent, end := context.WithCancelCause(t.Context())
	go watch(silent, end, out, time.Time{}, 10*time.Millisecond)
	<-silent.Done()
	if why := context.Cause(silent).Error(); !strings.Contains(why, "it said nothing for") {
		t.Errorf("a silent machine was ended for: %s", why)
	}
	late, end := context.WithCancelCause(t.Context())
	go watch(late, end, out, time.Now(), time.Hour)
	<-late.Done()
	if why := context.Cause(late).Error(); !strings.Contains(why, "-timeout") {
		t.Errorf("at the tests' end a machine was ended for: %s", why)
	}
	const quiet = 2 * time.Second
	talking, end := context.WithCancelCause(t.Context())
	defer end(nil)
	go watch(talking, end, out, time.Time{}, quiet)
	for begin := time.Now(); time.Since(begin) < quiet+time.Second+500*time.Millisecond &&
		talking.Err() == nil; time.Sleep(200 * time.Millisecond) {
		f, err := os.OpenFile(out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString("pass: on\n")
		f.Close()
	}
	if talking.Err() != nil {
		t.Errorf("a machine that talked was ended: %v", context.Cause(talking))
	}
}
