package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// TestIndexEntries: an index that git has only refreshed has the same digest, in every version; one that tracks another
// name, mode, content, stage or mark has not; one that is divided or not understood has none.
func TestIndexEntries(t *testing.T) {
	need.Tool(t, "git")
	for _, version := range []string{"2", "3", "4"} {
		dir := t.TempDir()
		git := func(args ...string) {
			t.Helper()
			cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
		write := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		read := func() (string, []byte, bool) {
			t.Helper()
			b, err := os.ReadFile(dir + "/.git/index")
			if err != nil {
				t.Fatal(err)
			}
			d, ok := IndexEntries(b)
			return d, b, ok
		}
		git("init", "-q")
		write("a", "one")
		write("b", "two")
		git("add", "a", "b")
		git("update-index", "--index-version", version)
		before, text, ok := read()
		if !ok {
			t.Fatalf("version %s is not understood", version)
		}
		if err := os.Chtimes(dir+"/a", time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		git("status")
		after, refreshed, ok := read()
		if !ok || after != before || string(text) == string(refreshed) {
			t.Errorf("version %s: refreshed: %s, before %s; the same bytes: %t", version, after, before,
				string(text) == string(refreshed))
		}
		for _, change := range []func(){
			func() { write("a", "other"); git("add", "a") },
			func() { git("update-index", "--chmod=+x", "b") },
			func() { git("update-index", "--assume-unchanged", "b") },
			func() { git("update-index", "--skip-worktree", "b") },
			func() { write("c", ""); git("add", "-N", "c") },
			func() { git("rm", "-q", "--cached", "a") },
		} {
			last, _, _ := read()
			change()
			if now, _, ok := read(); !ok || now == last {
				t.Errorf("version %s: a change is not seen", version)
			}
		}
		if _, ok := IndexEntries(text[:len(text)-1]); ok {
			t.Error("an index that is cut has a digest")
		}
		git("update-index", "--split-index")
		if _, _, ok := read(); ok {
			t.Error("one that is divided has a digest")
		}
	}
}
