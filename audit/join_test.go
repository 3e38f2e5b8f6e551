package audit

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Many write one log in turn: it is one chain, and nobody's turn is lost.
func TestJoin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	var all sync.WaitGroup
	for range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			w, err := Join(dir, "s1", Options{Start: Event{Op: "bwrap"}})
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Leave()
			if _, err := w.Note(Event{Kind: KindExec, Path: "/bin/" + strings.Repeat("x", 3000)}); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	file := filepath.Join(dir, "s1.jsonl")
	rep, err := VerifyFile(file)
	if err != nil || rep.Records != 21 || !rep.Shared || rep.Sealed {
		t.Fatalf("%+v, %v; want one start and 20 records of a log that is shared", rep, err)
	}
	// controls: one that a session seals is not shared, and what follows a change of this one does not verify
	w, err := Create(dir, "s2", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := VerifyFile(w.Path()); err != nil || rep.Shared || !rep.Sealed {
		t.Errorf("a session's log: %+v, %v", rep, err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(b), `"kind":"exec"`, `"kind":"exit"`, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if w, err := Join(dir, "s1", Options{}); err != nil {
		t.Error(err)
	} else {
		_, _ = w.Note(Event{Kind: KindExec})
		w.Leave()
	}
	if _, err := VerifyFile(file); err == nil {
		t.Error("a changed line passes")
	}
}

// A log whose end nobody can go on from is not written any more.
func TestJoinTorn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s1.jsonl"), []byte(`{"seq":1`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(dir, "s1", Options{}); err == nil || !strings.Contains(err.Error(), "torn") {
		t.Errorf("%v, want that its last line is torn", err)
	}
}

// TestRunning: a log is being written while its writer has it, and no longer.
func TestRunning(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "logs"), "s", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !Running(w.Path()) {
		t.Error("a log that is open counts as left")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if Running(w.Path()) || Running(w.Path()+"x") {
		t.Error("a log that is closed, or none, counts as being written")
	}
}
