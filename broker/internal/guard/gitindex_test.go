package guard

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// repository makes one with git itself, so that the parser is compared with what git writes.
func repository(t *testing.T, args ...string) (dir string, git func(args ...string) string) {
	t.Helper()
	need.Tool(t, "git")
	dir = t.TempDir()
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.example"},
			args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir, "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git(append([]string{"init", "-q"}, args...)...)
	return dir, git
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGitIndex(t *testing.T) {
	for name, c := range map[string]struct {
		init    []string
		version string
		size    int
	}{
		"version 2": {nil, "2", 20}, "version 3": {nil, "3", 20}, "version 4": {nil, "4", 20},
		"SHA-256": {[]string{"--object-format=sha256"}, "2", 32},
	} {
		t.Run(name, func(t *testing.T) {
			dir, git := repository(t, c.init...)
			write(t, dir+"/.env.test", "A=1\n")
			for _, n := range []string{"a", "a/b", "long-name-of-a-directory/and-a-file", "z"} {
				write(t, dir+"/x/"+n+".txt", n)
			}
			write(t, dir+"/sub/.env.test", "B=2\n")
			write(t, dir+"/later.env", "")
			git("add", ".env.test", "x", "sub")
			git("add", "-N", "later.env") // makes a version 3 of a version 2
			git("update-index", "--index-version", c.version)
			index, err := os.ReadFile(dir + "/.git/index")
			if err != nil {
				t.Fatal(err)
			}
			want := func(name []byte) bool { return !strings.HasPrefix(string(name), "x/") }
			got, err := GitIndex(index, c.size, want)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 2 {
				t.Errorf("found %d entries, want 2 (the intent to add has no contents): %v", len(got), got)
			}
			for n, text := range map[string]string{".env.test": "A=1\n", "sub/.env.test": "B=2\n"} {
				if !bytes.Equal(got[n], BlobID([]byte(text), c.size)) {
					t.Errorf("%s: %x", n, got[n])
				}
				if s := git("rev-parse", ":"+n); s != hex.EncodeToString(got[n]) {
					t.Errorf("%s: git says %s", n, s)
				}
			}
			if wrong, err := GitIndex(index, 52-c.size, want); err == nil && len(wrong) > 0 &&
				bytes.Equal(wrong[".env.test"], got[".env.test"]) {
				t.Error("an index is understood with the other length of ids")
			}
		})
	}
}

func TestPackHas(t *testing.T) {
	dir, git := repository(t)
	for i := range 300 {
		write(t, dir+"/f/"+strings.Repeat("x", i%7)+hex.EncodeToString([]byte{byte(i), byte(i >> 8)}),
			strings.Repeat("line\n", i))
	}
	git("add", ".")
	git("commit", "-q", "-m", "x")
	git("gc", "-q")
	list, _ := filepath.Glob(dir + "/.git/objects/pack/*.idx")
	if len(list) != 1 {
		t.Fatalf("packs: %v", list)
	}
	f, err := os.Open(list[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	readAt := func(off int64, n int) ([]byte, error) {
		b := make([]byte, n)
		_, err := f.ReadAt(b, off)
		return b, err
	}
	for i := range 300 {
		if ok, err := PackHas(readAt, BlobID([]byte(strings.Repeat("line\n", i)), sha1.Size)); err != nil || !ok {
			t.Fatalf("blob %d: %v, %v", i, ok, err)
		}
		if ok, err := PackHas(readAt, BlobID([]byte(strings.Repeat("none\n", i+1)), sha1.Size)); err != nil || ok {
			t.Fatalf("absent blob %d: %v, %v", i, ok, err)
		}
	}
}

func FuzzGitIndex(f *testing.F) {
	entry := append(make([]byte, 60), 0, 4)
	f.Add(append(append(append([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"), entry...),
		".env\x00\x00\x00\x00\x00\x00"...), make([]byte, 20)...), 20)
	f.Add([]byte("DIRC\x00\x00\x00\x04\xff\xff\xff\xff"), 32)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		got, err := GitIndex(b, size, func(name []byte) bool { return len(name) < 5 })
		for n, id := range got {
			if err != nil || len(id) != size || len(n) > 4 {
				t.Fatalf("%q: %x, %v", n, id, err)
			}
		}
	})
}

func FuzzPackHas(f *testing.F) {
	f.Add([]byte("\xfftOc\x00\x00\x00\x02"), []byte("01234567890123456789"))
	f.Fuzz(func(t *testing.T, b, id []byte) {
		if len(id) != 20 && len(id) != 32 {
			return
		}
		reads := 0
		has, err := PackHas(func(off int64, n int) ([]byte, error) {
			if reads++; reads > 64 {
				t.Fatal("more reads than a binary search takes")
			}
			if off < 0 || off+int64(n) > int64(len(b)) {
				return nil, io.ErrUnexpectedEOF
			}
			return b[off : off+int64(n)], nil
		}, id)
		if has && (err != nil || !bytes.Contains(b, id)) {
			t.Fatal(errors.Join(err, errors.New("an object that is not there")))
		}
	})
}
