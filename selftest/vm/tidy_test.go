package vm

import (
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
