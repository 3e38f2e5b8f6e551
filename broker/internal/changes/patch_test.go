//go:build linux

package changes

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// forms are what a name can stand for. No two of them have the same contents, else it would be a rename.
var forms = map[string]func(l *lab, top, name string){
	"nothing": func(*lab, string, string) {},
	"text":    func(l *lab, top, name string) { l.write(top, name, "one\ntwo of "+name+"\nthree\n") },
	"more":    func(l *lab, top, name string) { l.write(top, name, "one\n2 of "+name+"\nthree\nno newline") },
	"program": func(l *lab, top, name string) {
		l.write(top, name, "#!/bin/sh\n# "+name)
		l.check(os.Chmod(top+"/"+name, 0o755))
	},
	"runs": func(l *lab, top, name string) { // text with another mode
		l.write(top, name, "one\ntwo of "+name+"\nthree\n")
		l.check(os.Chmod(top+"/"+name, 0o755))
	},
	"empty": func(l *lab, top, name string) { l.write(top, name, "") },
	"empty program": func(l *lab, top, name string) {
		l.write(top, name, "")
		l.check(os.Chmod(top+"/"+name, 0o755))
	},
	"data": func(l *lab, top, name string) {
		l.write(top, name, name+strings.Repeat("\x00\x01\xff data that packs well ", 500))
	},
	"other data": func(l *lab, top, name string) {
		r := rand.New(rand.NewPCG(1, uint64(len(name))))
		var b strings.Builder
		for range 777 { // which does not
			b.WriteByte(byte(r.Uint32()))
		}
		l.write(top, name, b.String()+"\x00"+name)
		l.check(os.Chmod(top+"/"+name, 0o755))
	},
	"link":       func(l *lab, top, name string) { l.link("to no where", top, name) },
	"other link": func(l *lab, top, name string) { l.link("else\nwhere\xff", top, name) },
	"directory": func(l *lab, top, name string) {
		l.write(top, name+"/in it", "in "+name+"\n")
		l.write(top, name+"/sub/deep", "deep in "+name+"\n")
		l.link("x", top, name+"/sub/link")
		l.write(top, name+"/none", "")
	},
	"other directory": func(l *lab, top, name string) {
		l.write(top, name+"/in it/is a directory now", "that of "+name+"\n")
		l.write(top, name+"/sub", "was a directory in "+name+"\n")
	},
}

func (l *lab) link(text, top, name string) {
	l.t.Helper()
	l.check(os.MkdirAll(filepath.Dir(top+"/"+name), 0o755))
	l.check(os.Symlink(text, top+"/"+name))
}

// TestGitAppliesPatches: whatever a name was and has become, what git makes of the patch is what apply makes, up to
// what git knows of a tree: no empty directories, and whether files are executable.
func TestGitAppliesPatches(t *testing.T) {
	need.Tool(t, "git")
	for _, name := range []string{"plain", "sp ace", "two\nlines", "tab\there", "ünïcödé", "no\xfftext", `quo"te\`,
		"end ", " start", "-dash", "bell\a", "a b/b a b"} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			l := newLab(t)
			forms := maps.Clone(forms)
			if name != "plain" { // what differs is in the headers
				for _, form := range []string{"more", "runs", "empty program", "other link", "other directory", "other data"} {
					delete(forms, form)
				}
			}
			cell := func(old, now string) string { return name + "/" + old + " to " + now }
			for old, make := range forms {
				for now := range forms {
					make(l, l.host, cell(old, now))
				}
			}
			for _, f := range []string{name + "/from", name + "/last/" + name} {
				l.write(l.host, f, "moved in "+f)
			}
			l.write(l.host, name+"/from 2", "moved too in "+name)
			copied := t.TempDir()
			l.check(exec.Command("cp", "-a", l.host+"/.", copied).Run())
			l.begin()
			for old := range forms {
				for now, make := range forms {
					if now == "nothing" && old != now {
						l.whiteout(cell(old, now))
					} else if now != old {
						make(l, l.upper, cell(old, now))
						l.opaque(cell(old, now))
					}
				}
			}
			l.whiteout(name + "/from")
			l.write(l.upper, name+"/to", "moved in "+name+"/from")
			l.write(l.upper, name+"/last/"+name, "")
			l.whiteout(name + "/from 2")
			l.write(l.upper, name+"/to 2", "moved too in "+name)
			l.check(os.Chmod(l.upper+"/"+name+"/to 2", 0o755))
			var patch bytes.Buffer
			list := Renames(l.scan())
			for i := range list {
				list[i].Patch(&patch, l.host, true)
			}
			_, err := Apply(l.scan(), l.opt())
			l.check(err)
			l.git(copied, patch.String())
		})
	}
}

// For people it is only said of a file that is no text, and always of one that is too large.
func TestPatchOfData(t *testing.T) {
	l := newLab(t)
	l.begin()
	l.write(l.upper, "data", "no\x00text")
	l.write(l.upper, "large", "")
	l.check(os.Truncate(l.upper+"/large", maxPatch+1))
	const said = "diff --git a/%[1]s b/%[1]s\nnew file mode 100644\nBinary files /dev/null and b/%[1]s differ\n"
	for whole, want := range map[bool]string{false: fmt.Sprintf(said, "data") + fmt.Sprintf(said, "large"),
		true: fmt.Sprintf(said, "large")} {
		var b bytes.Buffer
		for _, c := range l.scan() {
			c.Patch(&b, l.host, whole)
		}
		if got := b.String(); !strings.HasSuffix(got, want) || strings.Contains(got, "GIT binary patch") != whole {
			t.Errorf("whole %v: %s", whole, got)
		}
	}
}

// git has git carry the patch over to a directory, and compares that with what apply has made of the host's.
func (l *lab) git(dir, patch string) {
	l.t.Helper()
	git := exec.Command("git", "apply", "--whitespace=nowarn", "-")
	git.Dir, git.Stdin = dir, strings.NewReader(patch)
	git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := git.CombinedOutput(); err != nil {
		l.t.Fatalf("%v: %s\n%s", err, out, patch)
	}
	if got, want := l.tree(dir), l.tree(l.host); got != want {
		l.t.Errorf("git made\n%s\nand apply\n%s", got, want)
	}
}

// opaque marks a directory of the layer as one that the session made.
func (l *lab) opaque(name string) {
	l.t.Helper()
	if info, err := os.Lstat(l.upper + "/" + name); err == nil && info.IsDir() {
		l.check(unix.Setxattr(l.upper+"/"+name, "user.overlay.opaque", []byte("y"), 0))
	}
}

// tree is what git knows of a directory.
func (l *lab) tree(top string) string {
	l.t.Helper()
	var b strings.Builder
	l.check(filepath.WalkDir(top, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		l.check(err)
		text, mode := "", info.Mode()&0o100
		if e.Type() == fs.ModeSymlink {
			text, err = os.Readlink(p)
			mode = 0
		} else {
			var data []byte
			data, err = os.ReadFile(p)
			text = string(data)
		}
		fmt.Fprintf(&b, "%q %v %o %q\n", strings.TrimPrefix(p, top), e.Type(), mode, text)
		return err
	}))
	return b.String()
}

// A patch with changes of a repository's own files is one that git reads: they are in it as comments. The control is
// the same patch for a terminal, where nothing reads it.
func TestPatchBesideGit(t *testing.T) {
	need.Tool(t, "git")
	l := newLab(t)
	l.write(l.host, "f", "old\n")
	l.write(l.host, ".git/HEAD", "ref: refs/heads/main\n")
	l.begin()
	l.write(l.upper, "f", "new\n")
	l.write(l.upper, ".git/HEAD", "ref: refs/heads/topic\n")
	l.write(l.upper, ".git/COMMIT_EDITMSG", "a message\n")
	l.write(l.upper, ".git/objects/ab/cd", "\x00data")
	var b, shown bytes.Buffer
	list := l.scan()
	for i := range list {
		list[i].Patch(&b, l.host, true)
		list[i].Patch(&shown, l.host, false)
	}
	if text := b.String(); !strings.Contains(text, "\n# +ref: refs/heads/topic\n") ||
		strings.Contains(text, "GIT binary") {
		t.Errorf("the patch is\n%s", text)
	}
	if !strings.Contains(shown.String(), "\n+ref: refs/heads/topic\n") {
		t.Errorf("shown is\n%s", shown.String())
	}
	to := t.TempDir()
	l.check(os.WriteFile(to+"/f", []byte("old\n"), 0o600))
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = to, &b
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(to + "/f"); err != nil || string(got) != "new\n" {
		t.Errorf("%q, %v", got, err)
	}
}
