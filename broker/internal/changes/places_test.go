//go:build linux

package changes

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// What is said of a name does not depend on which names were looked at before.
func TestPlaceOf(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"bare/HEAD", "bare/config", "bare/hooks/x", "a/b/.git/HEAD", "a/b/.git/hooks/x",
		"a/.vscode/tasks.json", "a/.envrc", "c/d/e/f", "node_modules/p/.git/config", ".git/modules/s/HEAD",
		".git/modules/s/config"} {
		p := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	judge, err := guard.NewJudge(guard.BuiltIn())
	if err != nil {
		t.Fatal(err)
	}
	s := scanner{upper: fd, host: -1, judges: judge}
	seen := map[guard.Action]int{}
	err = filepath.WalkDir(top, func(p string, _ fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(top, p)
		if err != nil || rel == "." {
			return err
		}
		dir := path.Dir(rel)
		if dir == "." {
			dir = ""
		}
		got, want := s.placeOf(dir).Rule(path.Base(rel), guard.ByHost), judge.At(rel, s.isRepository)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", rel, got, want)
		}
		seen[got.Action]++
		return nil
	})
	if err != nil || seen[guard.Free] < 5 || seen[guard.Guard] < 5 {
		t.Errorf("%v, %v", seen, err)
	}
}
