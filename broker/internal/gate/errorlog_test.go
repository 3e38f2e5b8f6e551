//go:build linux

package gate

import (
	"log"
	"os"
	"strings"
	"testing"

	"sbx.example/sbx/audit"
)

func TestGateErrorsAreRecorded(t *testing.T) {
	w, err := audit.Create(t.TempDir()+"/audit", "s1", audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	g := NewFileGate(&Session{Log: w})
	l := log.New(&gateLog{g: g}, "", 0)
	l.Print("before there is a record")
	close(g.ready)
	for range maxGateErrors + 50 {
		l.Printf("grafting %q: no such device", "/x\n")
	}
	b, err := os.ReadFile(w.Path())
	if n := strings.Count(string(b), `"kind":"error"`); err != nil || n != maxGateErrors ||
		strings.Contains(string(b), "before") {
		t.Errorf("%d errors are recorded (%v), want %d:\n%.400s", n, err, maxGateErrors, b)
	}
}
