//go:build linux

package placeholders

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// git runs git in a repository of a test's.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)
	cmd := exec.Command("git", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// left are the names below dir, without those of git's.
func left(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if p != dir {
			out = append(out, p[len(dir)+1:])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// clockPast makes a file anew until it is younger than that many nanoseconds: the clock of files goes by ticks.
func clockPast(t *testing.T, file string, than int64) {
	t.Helper()
	for born(t, file) <= than {
		time.Sleep(time.Millisecond)
		_ = os.Remove(file)
		write(t, file, "")
	}
}

// What holds something, is a link, is there twice, is being written, is tracked or is older stays.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/old", "")
	older := born(t, dir+"/old")
	clockPast(t, dir+"/.mark", older+2*tick)
	for _, name := range []string{"empty", "deep/a/empty", "full/a/empty", "linked", "written", "tracked", "unnamed"} {
		write(t, dir+"/"+name, "")
	}
	write(t, dir+"/full/b", "x")
	if os.Link(dir+"/linked", dir+"/twice") != nil || os.Symlink("empty", dir+"/link") != nil ||
		os.Symlink("deep", dir+"/way") != nil {
		t.Fatal("no links")
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", "tracked")
	f, err := os.OpenFile(dir+"/written", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := Set{names: []string{"empty", "deep", "full", "linked", "link", "way/a", "written", "tracked", "old", "none/x"},
		since: older + tick}
	s.Remove(dir)
	want := []string{".mark", "full", "full/a", "full/a/empty", "full/b", "link", "linked", "old", "tracked",
		"twice", "unnamed", "way", "written"}
	if got := left(t, dir); !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	// The same without those reasons: all of them can be removed.
	f.Close()
	git(t, dir, "rm", "-q", "--cached", "tracked")
	for _, name := range []string{"full/b", "twice"} {
		_ = os.Remove(dir + "/" + name)
	}
	s.since = 0
	s.Remove(dir)
	if got, want := left(t, dir), []string{".mark", "link", "unnamed", "way"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}

// Where a link has taken the place of the directory, nothing is removed of what it leads to.
func TestRemoveFollowsNoLink(t *testing.T) {
	top := t.TempDir()
	write(t, top+"/other/empty", "")
	if err := os.Symlink("other", top+"/project"); err != nil {
		t.Fatal(err)
	}
	Set{names: []string{"empty"}}.Remove(top + "/project")
	if got := left(t, top+"/other"); len(got) != 1 {
		t.Errorf("left are %q", got)
	}
	Set{names: []string{"empty"}}.Remove(top + "/other") // the control
	if got := left(t, top+"/other"); len(got) != 0 {
		t.Errorf("left are %q", got)
	}
}

// A file is tracked by the repository that it lies in, wherever that is; what cannot be understood tracks all.
func TestTracked(t *testing.T) {
	top := t.TempDir()
	dir := top + "/repo"
	for _, name := range []string{"a", "sub/a", "sub/b", "c"} {
		write(t, dir+"/"+name, "")
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", "a", "sub/b")
	git(t, dir, "commit", "-qm", "x")
	git(t, dir, "worktree", "add", "-q", top+"/tree")
	write(t, top+"/tree/c", "")
	check := func(want string, names ...string) {
		t.Helper()
		var got []string
		for _, name := range names {
			if tracked(top + "/" + name) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("tracked are %q, want %q", got, want)
		}
	}
	all := []string{"repo/a", "repo/sub/a", "repo/sub/b", "repo/c", "repo/.git/a", "tree/a", "tree/c", "outside"}
	check("repo/a repo/sub/b tree/a", all...)
	git(t, dir, "update-index", "--index-version", "4")
	check("repo/a repo/sub/b tree/a", all...)
	git(t, dir, "update-index", "--split-index")
	check("repo/a repo/sub/a repo/sub/b repo/c tree/a", all...)
	write(t, dir+"/.git/index", "nonsense")
	check("repo/a repo/sub/a repo/sub/b repo/c tree/a", all...)
	write(t, top+"/tree/.git", "nonsense")
	check("tree/a tree/c", all[5:]...)
}
