//go:build linux

package changes

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/host"
)

func (l *lab) hardLink(from, to string) {
	l.t.Helper()
	l.check(os.MkdirAll(filepath.Dir(to), 0o755))
	l.check(os.Link(from, to))
}

// A change of one name of a file leaves the others alone, wherever they are, as it did in the session, and says so.
// The controls are a file with one name, and a deletion.
func TestOtherNamesStay(t *testing.T) {
	l := newLab(t)
	outside := filepath.Join(t.TempDir(), "store")
	for _, f := range []string{"text", "mode", "alone", "gone", "type"} {
		l.write(l.host, f, "old")
		if f != "alone" {
			l.hardLink(l.host+"/"+f, filepath.Join(outside, f))
		}
	}
	l.begin()
	l.write(l.upper, "text", "new")
	l.write(l.upper, "alone", "new")
	l.write(l.upper, "mode", "old")
	l.check(os.Chmod(l.upper+"/mode", 0o755))
	l.check(os.Symlink("text", l.upper+"/type"))
	l.whiteout("gone")
	const alone = " (hard link: 1 other name does not change with it)"
	list := l.scan()
	if got, want := l.text(list), "M  alone\nD  gone\nP  mode (mode 0644 -> 0755)"+alone+"\nM  text"+alone+
		"\nT  type -> text"+alone+"\n"; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	res, err := Apply(list, l.opt())
	l.check(err)
	if res.Applied != 5 || len(res.Linked) != 3 {
		t.Errorf("%d applied, %d of them to one of several names", res.Applied, len(res.Linked))
	}
	for _, f := range []string{"text", "mode", "gone", "type"} {
		b, err := os.ReadFile(filepath.Join(outside, f))
		var st unix.Stat_t
		l.check(unix.Stat(filepath.Join(outside, f), &st))
		if err != nil || string(b) != "old" || st.Mode&0o777 != 0o644 {
			t.Errorf("the other name of %s has %q, mode %o, %v", f, b, st.Mode&0o777, err)
		}
	}
	var st unix.Stat_t
	l.check(unix.Stat(l.host+"/mode", &st))
	if l.read("mode") != "old" || st.Mode&0o777 != 0o755 || l.read("text") != "new" {
		t.Errorf("mode has %q and %o, text %q", l.read("mode"), st.Mode&0o777, l.read("text"))
	}
	if left := l.scan(); len(left) > 0 {
		t.Errorf("left:\n%s", l.text(left))
	}
}

// A file that loses a name by what is applied looks changed to the kernel. For the rest of the changes it is the one
// that it was, now and in a later call. The control is a file that the host writes to through a third name.
func TestOtherNamesAreNoConflict(t *testing.T) {
	for name, again := range map[string]bool{"at once": false, "by parts": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			outside := filepath.Join(t.TempDir(), "third")
			l.write(l.host, "a", "old")
			for _, to := range []string{"b", "d/a", "e/a"} {
				l.hardLink(l.host+"/a", filepath.Join(l.host, to))
			}
			l.write(l.host, "m", "old")
			l.hardLink(l.host+"/m", l.host+"/n")
			l.hardLink(l.host+"/m", outside)
			l.begin()
			for _, f := range []string{"a", "b", "m", "n"} {
				l.write(l.upper, f, "new")
			}
			l.whiteout("d")
			l.whiteout("e")
			if again {
				for _, only := range []string{"a", "e", "m"} {
					list, err := Scan([]Layer{l.layer}, []string{filepath.Join(l.host, only)})
					l.check(err)
					_, err = Apply(list, l.opt())
					l.check(err)
				}
				l.check(os.WriteFile(outside, []byte("changed"), 0o644))
				const want = "M  b (hard link: 1 other name does not change with it)\nD  d/ (1 below)\n" +
					"M  n (hard link: 1 other name does not change with it)  ! the host changed it after the session began\n"
				list := l.scan()
				if got := l.text(list); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
				l.heldUntilForced(list)
				return
			}
			if _, err := Apply(l.scan(), l.opt()); err != nil {
				t.Error(err)
			}
			if left := l.scan(); len(left) > 0 {
				t.Errorf("left:\n%s", l.text(left))
			}
		})
	}
}

// Several names of one file that the session made are several names of one file on the host. The controls are a copy,
// and a name whose file somebody has written to in between.
func TestNewNamesOfOneFile(t *testing.T) {
	l := newLab(t)
	l.begin()
	l.write(l.upper, "a", "x")
	l.hardLink(l.upper+"/a", l.upper+"/d/b")
	l.write(l.upper, "copy", "x")
	_, err := Apply(l.scan(), l.opt())
	l.check(err)
	number := func(name string) uint64 {
		var st unix.Stat_t
		l.check(unix.Stat(filepath.Join(l.host, name), &st))
		return st.Ino
	}
	if number("a") != number("d/b") || number("a") == number("copy") {
		t.Errorf("a is %d, d/b %d, copy %d", number("a"), number("d/b"), number("copy"))
	}
	l.check(os.WriteFile(l.host+"/a", []byte("host"), 0o644))
	a := &applier{layer: &l.layer, made: map[host.Inode]made{}}
	a.host, err = openRoot(l.host)
	l.check(err)
	defer unix.Close(a.host)
	var c Change
	l.check(unix.Stat(l.upper+"/a", &c.now))
	a.made[inodeOf(&c.now)] = made{"a", stamp{Ino: number("a")}}
	if a.linkMade(&c, a.host, "temp") {
		t.Error("another name was made of a file that somebody has written to")
	}
}
