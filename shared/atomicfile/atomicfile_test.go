package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	failed := errors.New("the disk is full")
	for name, replace := range map[string]func(string, fs.FileMode, func(io.Writer) error) error{
		"Replace": Replace, "ReplaceDurably": ReplaceDurably,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			write := func(text string, then error) error {
				return replace(path, 0o640, func(w io.Writer) error {
					_, err := io.WriteString(w, text)
					return errors.Join(err, then)
				})
			}
			want := func(text string) {
				t.Helper()
				if b, err := os.ReadFile(path); err != nil || string(b) != text {
					t.Fatalf("the file holds %q, %v; want %q", b, err, text)
				}
				if list, _ := os.ReadDir(dir); len(list) != 1 {
					t.Fatalf("something was left beside it: %v", list)
				}
			}
			for _, text := range []string{"one", "two"} {
				if err := write(text, nil); err != nil {
					t.Fatal(err)
				}
				want(text)
			}
			if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
				t.Fatalf("mode %v, %v", info.Mode(), err)
			}
			if err := write("half", failed); !errors.Is(err, failed) {
				t.Fatalf("a fill that failed: %v", err)
			}
			want("two")
			if err := replace(dir+"/none/f", 0o600, func(io.Writer) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("no such directory: %v", err)
			}
		})
	}
}

// What is written to is under a name that no program in a sandbox can open.
func TestNameForAMomentIsReserved(t *testing.T) {
	dir := t.TempDir()
	err := Replace(filepath.Join(dir, ".mcp.json"), 0o600, func(io.Writer) error {
		list, err := os.ReadDir(dir)
		if len(list) != 1 || !strings.HasPrefix(list[0].Name(), Reserved) {
			t.Errorf("beside the file there are %v while it is written", list)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
