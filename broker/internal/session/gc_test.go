package session

import (
	"os"
	"testing"
	"time"
)

// TestFresh: a folder that nobody has locked is not running, and is left alone for a while: it may be about to be.
func TestFresh(t *testing.T) {
	dir := t.TempDir()
	if Running(dir) || !Alive(dir) {
		t.Errorf("new folder: running %v, alive %v, want only alive", Running(dir), Alive(dir))
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(dir, old, old); err != nil || Alive(dir) {
		t.Errorf("old folder: alive %v (%v), want not", Alive(dir), err)
	}
}
