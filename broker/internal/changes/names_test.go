//go:build linux

package changes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What the host deletes or moves away while a session works on it does not come back unasked. Beside each stands what
// the session made or moved by itself, which is no conflict.
func TestHostDeletedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		inside, host func(l *lab)
		marked       string // the lines that name it
	}{
		"edited file": {func(l *lab) { l.write(l.upper, "f", "in") }, func(l *lab) { l.check(os.Remove(l.host + "/f")) },
			"A  f"},
		"file become a directory": {func(l *lab) { l.write(l.upper, "f/x", "in") },
			func(l *lab) { l.check(os.Remove(l.host + "/f")) }, "A  f/, A  f/x"},
		"file in a directory": {func(l *lab) { l.write(l.upper, "d/e/x", "in") },
			func(l *lab) { l.check(os.Rename(l.host+"/d/e/x", l.host+"/d/y")) }, "A  d/e/x"},
		"moved directory": {func(l *lab) { l.write(l.upper, "d/e/x", "in"); l.write(l.upper, "d/new", "in") },
			func(l *lab) { l.check(os.Rename(l.host+"/d", l.host+"/elsewhere")) }, "A  d/, A  d/e/, A  d/e/x, A  d/new"},
		"name that is no text": {func(l *lab) { l.write(l.upper, "\xff\n", "in") },
			func(l *lab) { l.check(os.Remove(l.host + "/\xff\n")) }, `A  "\xff\n"`},
		"the whole place": {func(l *lab) { l.write(l.upper, "new", "in") },
			func(l *lab) { l.check(os.Rename(l.host, l.host+"-elsewhere")) }, "A  ./, A  free, A  new"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			for _, f := range []string{"f", "d/e/x", "d/x", "from", "\xff\n"} {
				l.write(l.host, f, "old")
			}
			l.begin()
			l.whiteout("from")
			l.write(l.upper, "free", "new")
			c.inside(l)
			if list := l.scan(); strings.Contains(l.text(list), gone) {
				t.Fatalf("named before it was:\n%s", l.text(list))
			}
			c.host(l)
			list := l.scan()
			var marked []string
			for i := range list {
				if list[i].Changed {
					line, why, _ := strings.Cut(strings.Replace(list[i].In(l.host), l.host, ".", 1), "  ! ")
					if marked = append(marked, line); why != gone {
						t.Errorf("%s: %q, want %q", line, why, gone)
					}
				}
			}
			if got := strings.Join(marked, ", "); got != c.marked {
				t.Errorf("marked are %s, want %s\nof\n%s", got, c.marked, l.text(list))
			}
			l.heldUntilForced(list)
		})
	}
}

// heldUntilForced applies what has conflicts: not at all, then by force.
func (l *lab) heldUntilForced(list []Change) {
	l.t.Helper()
	var r *Refused
	if _, err := Apply(list, l.opt()); !errors.As(err, &r) {
		l.t.Fatalf("%v\n%s", err, l.text(list))
	}
	if after := l.text(l.scan()); after != l.text(list) {
		l.t.Errorf("something was applied although it was refused:\n%s\nwas\n%s", after, l.text(list))
	}
	opt := l.opt()
	opt.Force = true
	if _, err := Apply(list, opt); err != nil {
		l.t.Fatal(err)
	}
	if left := l.scan(); len(left) > 0 {
		l.t.Errorf("left after --force:\n%s", l.text(left))
	}
}

// Where the names were not noted, a directory of the host's is known by the kernel's mark.
func TestDirectoryWithoutNotedNames(t *testing.T) {
	l := newLab(t)
	l.write(l.host, "e/d/x", "old")
	l.begin()
	l.check(os.Remove(l.ses + "/" + namesFile))
	for _, d := range []string{"e/d", "new"} {
		l.write(l.upper, d+"/x", "in")
	}
	l.check(unix.Setxattr(l.upper+"/e/d", "user.overlay.origin", nil, 0))
	l.check(os.RemoveAll(l.host + "/e/d"))
	const want = "A  e/d/  ! " + gone + "\nA  e/d/x  ! " + gone + "\nA  new/\nA  new/x\n"
	if got := l.text(l.scan()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What the host has deleted does not come back where its directory's names were not noted, for whatever reason: what is
// new in a directory that the host has changed since may be that. The controls are directories that it has not changed,
// whose names were noted, or in which it makes no difference.
func TestHostDeletedWhatWasNotNoted(t *testing.T) {
	l := newLab(t)
	for _, f := range []string{"changed/f", "changed/g", "left/g", "noted/f", "noted/g", ".git/objects/ab/f"} {
		l.write(l.host, f, "old")
	}
	l.begin()
	l.rewriteNames(func(dir string) bool { return dir == "." || dir == "noted" })
	for _, f := range []string{"changed/f", "changed/g", "changed/new", "left/g", "left/new", "noted/f", "noted/new",
		".git/objects/ab/f"} {
		l.write(l.upper, f, "in")
	}
	for _, f := range []string{"changed/f", "noted/f", ".git/objects/ab/f"} {
		l.check(os.Remove(filepath.Join(l.host, f)))
	}
	const want = "A  .git/objects/ab/f\nA  changed/f  ! " + unknown + "\nM  changed/g\nA  changed/new  ! " + unknown +
		"\nM  left/g\nA  left/new\nA  noted/f  ! " + gone + "\nA  noted/new\n"
	list := l.scan()
	if got := l.text(list); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	l.heldUntilForced(list)
}

// A mode of which nobody knows who has changed it is a conflict. The control is a directory that the host left alone.
func TestModeThatWasNotNoted(t *testing.T) {
	l := newLab(t)
	l.write(l.host, "changed/f", "old")
	l.write(l.host, "left/f", "old")
	l.write(l.host, "file", "old")
	l.begin()
	l.check(os.Remove(l.host + "/file"))
	l.rewriteNames(func(dir string) bool { return dir == "." })
	for _, d := range []string{"changed", "left"} {
		l.write(l.upper, d+"/f", "old")
		l.check(os.Chmod(filepath.Join(l.upper, d), 0o700))
	}
	l.check(os.Chmod(l.host+"/changed", 0o711))
	// What was no directory then is one that this made: apply, killed before its last step.
	l.write(l.host, "file/f", "in")
	l.check(os.Chmod(l.host+"/file", 0o700))
	l.write(l.upper, "file/f", "in")
	const want = "P  changed/ (mode 0711 -> 0700)  ! the host changed it or what is in it meanwhile, and its mode " +
		"before is not known\nP  file/ (mode 0700 -> 0755)\nP  left/ (mode 0755 -> 0700)\n"
	if got := l.text(l.scan()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A directory that the host changes after the session began and before it is listed is not known.
func TestListedTooLate(t *testing.T) {
	l := newLab(t)
	l.write(l.host, "early/f", "old")
	l.write(l.host, "late/f", "old")
	l.begin()
	l.check(os.Remove(l.ses + "/" + namesFile))
	l.check(os.Remove(l.host + "/late/f"))
	l.check(noteNames([]Layer{l.layer}, l.ses, never))
	l.check(os.Remove(l.host + "/early/f"))
	for _, f := range []string{"early/f", "late/f"} {
		l.write(l.upper, f, "in")
	}
	if got := l.text(l.scan()); got != "A  early/f  ! "+gone+"\nA  late/f  ! "+unknown+"\n" {
		t.Errorf("got\n%s", got)
	}
}

// rewriteNames keeps the lines of some directories in what was noted.
func (l *lab) rewriteNames(keep func(dir string) bool) {
	l.t.Helper()
	b, err := os.ReadFile(l.ses + "/" + namesFile)
	l.check(err)
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		var of listing
		if l.check(json.Unmarshal([]byte(line), &of)); keep(string(of.Dir)) {
			out.WriteString(line)
		}
	}
	l.check(os.WriteFile(l.ses+"/"+namesFile, []byte(out.String()), 0o600))
}

// The names nearest to the top are noted where not all can be, those that tools made last, and git's own store never.
func TestNotedNamesAtOnce(t *testing.T) {
	l := newLab(t)
	for _, f := range []string{"a/b/c", "node_modules/p/x", ".git/objects/ab/1", ".git/HEAD", "z"} {
		l.write(l.host, f, "")
	}
	l.begin()
	for left, want := range map[int]string{100: ".: 4, a: 1, a/b: 1, .git: 2, node_modules: 1, node_modules/p: 1",
		6: ".: 4, a: 1, a/b: 1", 4: ".: 4", 0: ""} {
		var b strings.Builder
		l.check(l.layer.list(&b, &left, never))
		l.check(os.MkdirAll(l.ses+"/overlay", 0o700))
		// A line that was not written to its end is left out.
		l.check(os.WriteFile(l.ses+"/"+namesFile, []byte(b.String()+`{"target":"/cut`), 0o600))
		noted := notedNames(l.ses)[l.host]
		var got []string
		for _, dir := range []string{".", "a", "a/b", ".git", ".git/objects", "node_modules", "node_modules/p"} {
			if names, ok := noted[dir]; ok {
				got = append(got, fmt.Sprintf("%s: %d", dir, len(names.names)))
			}
		}
		if left := 0; want == "" { // all, as long as the program runs
			var all strings.Builder
			l.check(l.layer.list(&all, &left, func() bool { return true }))
			if n := strings.Count(all.String(), "\n"); n != 6 {
				t.Errorf("%d directories are noted while the program runs, want 6", n)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s, want %s", strings.Join(got, ", "), want)
		}
	}
}

// A mode that the host alone has given a directory stays; one that both have is a conflict. The control is the
// session's own.
func TestHostChangedModeMeanwhile(t *testing.T) {
	for name, c := range map[string]struct{ inside, host, want os.FileMode }{
		"the session's": {0o700, 0o755, 0o700},
		"the host's":    {0o755, 0o700, 0o700},
		"the same":      {0o700, 0o700, 0o700},
		"both":          {0o711, 0o700, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.host, "d/f", "old")
			l.begin()
			l.write(l.upper, "d/f", "in")
			l.check(os.Chmod(l.upper+"/d", c.inside))
			l.check(os.Chmod(l.host+"/d", c.host))
			list := l.scan()
			if c.want == 0 {
				if held := list[0].String(); !strings.Contains(held, "! the host changed it after the session began") {
					t.Errorf("not named: %s", held)
				}
				opt := l.opt()
				opt.Skip = true // leaves the mode out, and nothing else
				if res, err := Apply(list, opt); err != nil || res.Applied != 1 || len(res.Held) != 1 {
					t.Errorf("%+v, %v", res, err)
				}
				l.heldUntilForced(l.scan())
				c.want = c.inside
			} else if _, err := Apply(list, l.opt()); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(l.host + "/d")
			if l.check(err); info.Mode().Perm() != c.want || l.read("d/f") != "in" {
				t.Errorf("%v and %q, want %v", info.Mode(), l.read("d/f"), c.want)
			}
			if left := l.scan(); len(left) > 0 {
				t.Errorf("left after all was applied:\n%s", l.text(left))
			}
		})
	}
}

// What is applied by parts changes a directory whose names were not noted. That is no change of the host's: it is noted
// before. The controls are a directory that the host has changed before, and a name that it deletes after.
func TestAppliedByParts(t *testing.T) {
	l := newLab(t)
	for _, f := range []string{"d/old", "d/gone", "d/e/f", "changed/f", "m/f"} {
		l.write(l.host, f, "old")
	}
	l.begin()
	l.rewriteNames(func(dir string) bool { return dir == "." })
	l.check(os.Remove(l.host + "/changed/f"))
	for _, f := range []string{"d/old", "d/a", "d/b", "d/gone", "d/e/a", "d/e/b", "d/new/x", "d/new/y", "changed/a",
		"changed/b", "m/a"} {
		l.write(l.upper, f, "in")
	}
	for _, only := range []string{"d/old", "d/a", "d/e/a", "d/new/x"} {
		list, err := Scan([]Layer{l.layer}, []string{filepath.Join(l.host, only)})
		l.check(err)
		opt := l.opt()
		_, err = Apply(list, opt)
		l.check(err)
	}
	l.check(os.Chmod(l.upper+"/m", 0o700))
	opt := l.opt()
	list := l.scan()
	for i := range list {
		if list[i].In(l.host) == "P  m/ (mode 0755 -> 0700)" {
			_, err := Apply(list[i:i+1], opt)
			l.check(err)
		}
	}
	l.check(os.Remove(l.host + "/d/gone"))
	const want = "A  changed/a  ! " + unknown + "\nA  changed/b  ! " + unknown +
		"\nA  d/b\nA  d/e/b\nA  d/gone  ! " + gone + "\nA  d/new/y\nA  m/a\n"
	list = l.scan()
	if got := l.text(list); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	l.heldUntilForced(list)
}
