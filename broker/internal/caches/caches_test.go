//go:build linux

package caches

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// tree makes files with their contents, and reads them back as "name=content" lines.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(to, p); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c",
		`cd "$0" && find . -mindepth 1 '(' -type f -o -type l ')' -printf '%P ' -exec sh -c 'test -h "$0" && readlink "$0" || cat "$0"; echo' '{}' ';' | sort`, dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; ")
}

func take(t *testing.T, root, upper string, keep ...string) bool {
	t.Helper()
	p := Open(root, "/home/u/app")
	defer p.Close()
	fresh, err := p.Take("/home/u/.cache", upper, keep)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

func layer(t *testing.T, root string) string {
	t.Helper()
	p := Open(root, "/home/u/app")
	defer p.Close()
	return p.Layer("/home/u/.cache")
}

func TestTake(t *testing.T) {
	root := filepath.Join(t.TempDir(), "caches")
	if layer(t, root) != "" {
		t.Fatal("there is a layer before anything was kept")
	}
	one := tree(t, map[string]string{"pip/a": "1", "pip/b/c": "1", "zsh/prompt": "evil", "uv/x": "1"})
	if !take(t, root, one, "pip", "uv", "go-build") {
		t.Error("the first layer of a project is not told")
	}
	if got, want := read(t, layer(t, root)), "pip/a 1; pip/b/c 1; uv/x 1"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
	two := tree(t, map[string]string{"pip/a": "2", "pip/b/d": "2", "uv": "a file now", "go-build/e": "2"})
	if take(t, root, two, "pip", "uv", "go-build") {
		t.Error("the second is told like a first")
	}
	if got, want := read(t, layer(t, root)), "go-build/e 2; pip/a 2; pip/b/c 1; pip/b/d 2; uv a file now"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
}

// TestTakeNothing: a session that wrote nothing that is kept leaves no folder.
func TestTakeNothing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "caches")
	for _, keep := range [][]string{{"pip"}, {"."}} {
		if take(t, root, tree(t, nil), keep...) || layer(t, root) != "" {
			t.Errorf("%v: a layer was made of nothing", keep)
		}
	}
	if _, err := os.Lstat(root); err == nil {
		t.Error("the folder of all layers was made")
	}
}

// TestTakeReplaces: what the session made anew, or took away, covers what an earlier one left.
func TestTakeReplaces(t *testing.T) {
	root := filepath.Join(t.TempDir(), "caches")
	take(t, root, tree(t, map[string]string{"m/old": "1", "n/old": "1", "keep": "1"}), ".")
	upper := tree(t, map[string]string{"m/new": "2"})
	err := unix.Setxattr(filepath.Join(upper, "m"), "user.overlay.opaque", []byte("y"), 0)
	need.Fact(t, err == nil, "attributes of users in %s", os.TempDir())
	take(t, root, upper, ".")
	if got, want := read(t, layer(t, root)), "keep 1; m/new 2; n/old 1"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
}

// TestTakeReadOnly: the directories of Go's modules cannot be written by their owner.
func TestTakeReadOnly(t *testing.T) {
	root := filepath.Join(t.TempDir(), "caches")
	upper := func(text string) string {
		dir := tree(t, map[string]string{"mod/a@v1/x": text, "mod/a@v1/sub/" + text: text})
		for _, d := range []string{"mod/a@v1/sub", "mod/a@v1", "mod"} {
			if err := os.Chmod(filepath.Join(dir, d), 0o555); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", dir).Run() })
		return dir // the second one has what it replaced, too
	}
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", root).Run() })
	take(t, root, upper("1"), ".")
	take(t, root, upper("2"), ".")
	if got, want := read(t, layer(t, root)), "mod/a@v1/sub/1 1; mod/a@v1/sub/2 2; mod/a@v1/x 2"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
	for _, d := range []string{"mod", "mod/a@v1", "mod/a@v1/sub"} {
		if info, err := os.Lstat(filepath.Join(layer(t, root), d)); err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("%s: %v %v, want 0555", d, info.Mode(), err)
		}
	}
}

// TestTakeFollowsNothing: links that a session left lead neither the reading nor the writing anywhere.
func TestTakeFollowsNothing(t *testing.T) {
	outside := tree(t, map[string]string{"file": "host"})
	if err := os.Chmod(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "caches")
	take(t, root, tree(t, map[string]string{"pip": "-> " + outside}), "pip")
	upper := tree(t, map[string]string{"pip/file": "evil"}) // onto a link that the first one left
	if err := os.Chmod(filepath.Join(upper, "pip"), 0o500); err != nil {
		t.Fatal(err)
	}
	take(t, root, upper, "pip")
	third := tree(t, map[string]string{"pip": "-> " + outside})
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", third).Run() }) // it has the directory now
	take(t, root, third, "pip")                                               // and a link onto a directory
	if got := read(t, outside); got != "file host" {
		t.Errorf("outside there is %q now", got)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("outside has mode %v now: %v", info.Mode(), err)
	}
	link := filepath.Join(t.TempDir(), "upper")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	take(t, root, link, ".")
	if got := read(t, outside); got != "file host" {
		t.Errorf("a layer that is a link was followed: outside there is %q now", got)
	}
	if got := Installed(tree(t, map[string]string{"bin": "-> " + outside}), "bin"); len(got) != 0 {
		t.Errorf("a link was listed: %q", got)
	}
}

// TestTakeDeep: a session cannot have this go down without end.
func TestTakeDeep(t *testing.T) {
	root := filepath.Join(t.TempDir(), "caches")
	deep := strings.Repeat("d/", 3*maxDepth)
	take(t, root, tree(t, map[string]string{deep + "old": "1"}), "d")
	take(t, root, tree(t, map[string]string{deep + "new": "2"}), "d")
	if got := read(t, layer(t, root)); got != deep+"new 2" {
		t.Errorf("kept %q", got)
	}
}

func TestProjectsAreApart(t *testing.T) {
	root := filepath.Join(t.TempDir(), "caches")
	take(t, root, tree(t, map[string]string{"a": "1"}), ".")
	for _, other := range []string{"/home/u/other/app", "/home/u/app2", "/home/u", "/home/u/app/"} {
		p := Open(root, other)
		if got := p.Layer("/home/u/.cache"); got != "" {
			t.Errorf("%s has the layer %s of /home/u/app", other, got)
		}
		p.Close()
	}
	p := Open(root, "/home/u/app")
	defer p.Close()
	if got := p.Layer("/home/u/.npm"); got != "" {
		t.Errorf("another place has the layer %s", got)
	}
}

func TestRemove(t *testing.T) {
	root := filepath.Join(t.TempDir(), "caches")
	take(t, root, tree(t, map[string]string{"a": "1"}), ".")
	p := Open(root, "/home/u/app")
	list, err := List(root)
	if err != nil || len(list) != 1 || list[0].Project != "/home/u/app" || !list[0].InUse {
		t.Fatalf("listed %+v, %v", list, err)
	}
	if err := Remove(p.Dir); !errors.Is(err, ErrInUse) {
		t.Errorf("removed while a session has it: %v", err)
	}
	p.Close()
	if err := Remove(p.Dir); err != nil {
		t.Error(err)
	}
	if list, err = List(root); err != nil || len(list) != 0 || layer(t, root) != "" {
		t.Errorf("after removal there is %+v, %v", list, err)
	}
}

func TestSweep(t *testing.T) {
	root := filepath.Join(t.TempDir(), "caches")
	here := t.TempDir()
	for _, path := range []string{here, "/nonexistent/project"} {
		p := Open(root, path)
		if _, err := p.Take("/home/u/.cache", tree(t, map[string]string{"a": "1"}), []string{"."}); err != nil {
			t.Fatal(err)
		}
		p.Close()
	}
	for _, x := range []struct {
		after time.Duration
		want  int
	}{{time.Minute, 2}, {orphan + time.Minute, 1}, {idle + time.Minute, 0}} {
		Sweep(root, time.Now().Add(x.after))
		if list, _ := List(root); len(list) != x.want {
			t.Errorf("after %v there are %d, want %d", x.after, len(list), x.want)
		}
	}
}
