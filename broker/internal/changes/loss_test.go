//go:build linux

package changes

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
)

// A directory that an apply has moved aside goes only after it was compared: one that was killed before that, and the
// discard that follows, must not throw away what the host made in it meanwhile.
func TestRecoverLooksIntoDirectories(t *testing.T) {
	const temp = ".sbx-replace-apply-s-0"
	for name, seen := range map[string]bool{"before the comparison": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.host, "d/old", "x")
			var st unix.Stat_t
			l.check(unix.Lstat(l.host+"/d", &st))
			in := intent{Target: plan.Bytes(l.host), Dir: ".", Name: "d", Temp: temp,
				stamp: stamp{Dev: st.Dev, Ino: st.Ino, Size: st.Size}}
			j, err := openJournal(l.ses)
			l.check(err)
			l.check(j.note(in))
			if in.Seen = seen; seen {
				l.check(j.note(in))
			}
			l.check(j.f.Close())
			l.write(l.host, "d/made", "meanwhile")
			l.check(os.Rename(l.host+"/d", l.host+"/"+temp))
			l.check(Recover(l.ses))
			if got, want := l.read("d/made") == "meanwhile", !seen; got != want {
				t.Errorf("what the host made is there: %v, want %v", got, want)
			}
			if _, err := os.Lstat(l.host + "/" + temp); err == nil {
				t.Error("the name for a moment is left")
			}
			if _, err := os.Lstat(l.ses + "/apply.jsonl"); err == nil {
				t.Error("the journal is left")
			}
		})
	}
}

// What Recover has put back is as it was: the next apply does not take it for changed by the host, unless that has
// changed it since.
func TestAppliesWhatWasPutBack(t *testing.T) {
	const temp = ".sbx-replace-apply-s-0"
	for name, inside := range map[string]func(l *lab){"deleted": func(l *lab) { l.whiteout("d") },
		"replaced by a file": func(l *lab) { l.write(l.upper, "d", "a file") }} {
		for _, changed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, changed %v", name, changed), func(t *testing.T) {
				l := newLab(t)
				l.write(l.host, "d/old", "x")
				l.begin()
				inside(l)
				c := &l.scan()[0]
				j, err := openJournal(l.ses)
				l.check(err)
				l.check(j.note(intent{Target: plan.Bytes(l.host), Dir: ".", Name: "d", Temp: temp, stamp: stampOf(&c.old)}))
				l.check(j.f.Close())
				l.check(os.Rename(l.host+"/d", l.host+"/"+temp)) // and killed
				l.check(Recover(l.ses))
				if changed {
					var was, now unix.Stat_t
					l.check(unix.Stat(l.host+"/d", &was))
					for now = was; now.Ctim == was.Ctim; { // the kernel's clock ticks
						l.check(os.Chmod(l.host+"/d", 0o711))
						l.check(unix.Stat(l.host+"/d", &now))
					}
				}
				list := l.scan()
				_, err = Apply(list, l.opt())
				if (err != nil) != changed || strings.Contains(l.text(list), "after the session began") != changed {
					t.Errorf("%v\n%s", err, l.text(list))
				}
			})
		}
	}
}

// A journal is read whatever length its lines have: a program that makes deep directories of bytes that are not UTF-8
// must not leave an apply that nobody can end. What cannot be cleaned up is named, each place of it.
func TestRecoverReadsLongLines(t *testing.T) {
	const temp = ".sbx-replace-apply-s-0"
	name := strings.Repeat("\xff", 230)
	for label, depth := range map[string]int{"deep": 60, "flat": 1} {
		t.Run(label, func(t *testing.T) {
			l := newLab(t)
			at, err := openRoot(l.host)
			l.check(err)
			for range depth {
				l.check(unix.Mkdirat(at, name, 0o755))
				next, err := openSame(at, name)
				unix.Close(at)
				l.check(err)
				at = next
			}
			defer unix.Close(at)
			fd, err := unix.Openat(at, temp, unix.O_CREAT|unix.O_WRONLY, 0o644)
			l.check(err)
			unix.Close(fd)
			j, err := openJournal(l.ses)
			l.check(err)
			dir := strings.TrimSuffix(strings.Repeat(name+"/", depth), "/")
			l.check(j.note(intent{Target: plan.Bytes(l.host), Dir: plan.Bytes(dir), Name: "f", Temp: temp}))
			l.write(l.host, "f/x", "")
			for _, not := range []string{"f", "f/x"} { // no directory of ours, and no directory
				l.check(j.note(intent{Target: plan.Bytes(l.host), Dir: plan.Bytes(not), Name: "f", Temp: temp}))
			}
			info, err := j.f.Stat()
			l.check(err)
			if long := info.Size() > 64<<10; long != (depth > 1) {
				t.Fatalf("a journal of %d bytes", info.Size())
			}
			l.check(j.f.Close())
			if err := Recover(l.ses); err == nil || !strings.Contains(err.Error(), "/f/x: not a directory") {
				t.Errorf("%v does not name what was not cleaned up", err)
			}
			if _, err := unix.Openat(at, temp, unix.O_RDONLY, 0); err != unix.ENOENT {
				t.Errorf("our copy is left: %v", err)
			}
			l.check(os.Remove(l.host + "/f/x"))
			if err := Recover(l.ses); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(l.ses + "/apply.jsonl"); err == nil {
				t.Error("the journal is left")
			}
		})
	}
}

// A file that takes the place of a directory is exchanged with it. After a kill right behind that the directory is put
// back, unless somebody has written to the file since.
func TestRecoverExchangesBack(t *testing.T) {
	const temp = ".sbx-replace-apply-s-0"
	for name, edited := range map[string]bool{"as it was put there": false, "written to since": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.host, "d/old", "x")
			l.begin()
			l.write(l.upper, "d", "a file")
			c := &l.scan()[0]
			j, err := openJournal(l.ses)
			l.check(err)
			root, err := openRoot(l.host)
			l.check(err)
			defer unix.Close(root)
			l.write(l.host, temp, "a file")
			in := intent{Target: plan.Bytes(l.host), Dir: ".", Name: "d", Temp: temp,
				stamp: stamp{Dev: c.old.Dev, Ino: c.old.Ino}}
			l.check(j.note(in))
			staged, err := pin(root, temp)
			l.check(err)
			defer unix.Close(staged)
			l.check((&applier{opt: l.opt(), j: j}).notePut(c, staged, &in))
			l.check(rename(root, temp, "d", unix.RENAME_EXCHANGE))
			l.check(j.f.Close())
			if edited {
				l.write(l.host, "d", "somebody's words")
			}
			err = Recover(l.ses)
			switch {
			case edited && (err == nil || l.read("d") != "somebody's words" || l.read(temp+"/old") != "x"):
				t.Errorf("%v, and it is %q", err, l.read("d"))
			case !edited && (err != nil || l.read("d/old") != "x"):
				t.Errorf("%v, and the directory has %q", err, l.read("d/old"))
			}
			if _, err := os.Lstat(l.host + "/" + temp); (err == nil) != edited {
				t.Errorf("the name for a moment is left: %v", err == nil)
			}
		})
	}
}

// Where names cannot be exchanged, what is replaced is compared all the same.
func TestReplaceWithoutExchange(t *testing.T) {
	for name, meanwhile := range map[string]func(l *lab){"as it was": func(*lab) {},
		"changed": func(l *lab) { l.write(l.host, "d/made", "meanwhile") }} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.host, "d/old", "x")
			l.begin()
			l.write(l.upper, "d", "a file")
			list := l.scan()
			if len(list) != 1 || list[0].Op != Replaced {
				t.Fatal(l.text(list))
			}
			meanwhile(l)
			j, err := openJournal(l.ses)
			l.check(err)
			root, err := openRoot(l.host)
			l.check(err)
			defer unix.Close(root)
			c := &list[0]
			l.write(l.host, "temp", "a file")
			in := intent{Target: plan.Bytes(l.host), Dir: ".", Name: "d", Temp: "temp",
				stamp: stamp{Dev: c.old.Dev, Ino: c.old.Ino}}
			err = (&applier{opt: l.opt(), j: j}).without(c, root, "d", "temp", &in)
			if got := l.read("d"); name == "as it was" && (err != nil || got != "a file") {
				t.Errorf("%v, and it is %q", err, got)
			}
			if got := l.read("d/made"); name == "changed" && (err == nil || got != "meanwhile") {
				t.Errorf("%v, and what was made is %q", err, got)
			}
		})
	}
}

// What a file or directory has beside its contents comes along, however long it is.
func TestAttributesAreApplied(t *testing.T) {
	l := newLab(t)
	l.write(l.host, "f", "old")
	l.begin()
	l.write(l.upper, "f", "new, and longer")
	l.check(os.Mkdir(l.upper+"/d", 0o755))
	long := bytes.Repeat([]byte("v"), 6000)
	for _, p := range []string{l.upper + "/f", l.upper + "/d"} {
		if err := unix.Setxattr(p, "user.long", long, 0); err == unix.ENOSPC || err == unix.EOPNOTSUPP {
			long = long[:100] // ext4 has a block for all
			need.Fact(t, unix.Setxattr(p, "user.long", long, 0) == nil, "a file system with attributes of users'")
		} else {
			l.check(err)
		}
	}
	_, err := Apply(l.scan(), l.opt())
	l.check(err)
	for _, p := range []string{l.host + "/f", l.host + "/d"} {
		got := make([]byte, 8<<10)
		n, err := unix.Getxattr(p, "user.long", got)
		if err != nil || !bytes.Equal(got[:n], long) {
			t.Errorf("%s: %v, %d bytes, want %d", p, err, n, len(long))
		}
	}
	if strings.Contains(l.text(l.scan()), "f") {
		t.Error("it is still different")
	}
}

// A change of them alone is listed and applied, taking one away included; a file that was only touched is not listed.
func TestAttributesAloneAreListed(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"f", "g", "touched"} {
		l.write(l.host, name, "same")
	}
	l.check(os.Mkdir(l.host+"/d", 0o755))
	if err := unix.Setxattr(l.host+"/g", "user.old", []byte("1"), 0); err != nil {
		need.Fact(t, false, "a file system with attributes of users'")
	}
	l.check(unix.Setxattr(l.host+"/d", "user.old", []byte("1"), 0))
	l.begin()
	for _, name := range []string{"f", "g", "touched"} {
		l.write(l.upper, name, "same")
	}
	l.check(os.Mkdir(l.upper+"/d", 0o755))
	l.check(unix.Setxattr(l.upper+"/f", "user.new", nil, 0))
	l.check(unix.Setxattr(l.upper+"/d", "user.new", []byte("2"), 0))
	const want = "P  d/ (attributes)\nM  f (attributes)\nM  g (attributes)\n"
	if got := l.text(l.scan()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	_, err := Apply(l.scan(), l.opt())
	l.check(err)
	if got := l.text(l.scan()); got != "" {
		t.Errorf("after it was applied: %q", got)
	}
}
