//go:build linux

package changes

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
)

// A directory that was made writable gets its mode again after a kill, and what is left in it is removed before. One
// that somebody has given another mode meanwhile keeps that, and so does another one in its place.
func TestRecoverShutsDirectories(t *testing.T) {
	const temp = ".sbx-replace-apply-s-0"
	for name, c := range map[string]struct {
		meanwhile func(l *lab, dir string)
		want      os.FileMode
	}{
		"killed while it was open": {func(l *lab, dir string) { l.check(os.Chmod(dir, 0o755)) }, 0o555},
		"killed before":            {func(*lab, string) {}, 0o555},
		"the host's own change":    {func(l *lab, dir string) { l.check(os.Chmod(dir, 0o700)) }, 0o700},
		"another directory": {func(l *lab, dir string) {
			l.check(os.Rename(dir, dir+"-old"))
			l.check(os.Mkdir(dir, 0o755))
			l.check(os.Chmod(dir, 0o755))
			l.write(dir, temp, "half a copy")
		}, 0o755},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			dir := l.host + "/d"
			l.write(dir, temp, "half a copy")
			l.check(os.Chmod(dir, 0o555))
			var st unix.Stat_t
			l.check(unix.Lstat(dir, &st))
			j, err := openJournal(l.ses)
			l.check(err)
			l.check(j.note(intent{Target: plan.Bytes(l.host), Dir: "d", stamp: stampOf(&st), Mode: &modes{0o555, 0o755}}))
			l.check(j.note(intent{Target: plan.Bytes(l.host), Dir: "d", Name: "f", Temp: temp}))
			l.check(j.f.Close())
			c.meanwhile(l, dir)
			l.check(Recover(l.ses))
			info, err := os.Stat(dir)
			l.check(err)
			if info.Mode().Perm() != c.want {
				t.Errorf("%v, want %v", info.Mode().Perm(), c.want)
			}
			if list, _ := os.ReadDir(dir); len(list) > 0 {
				t.Errorf("%s is left", list[0].Name())
			}
		})
	}
}

// What apply makes has the mode that it had inside, sticky bits of directories included, and nothing of a default ACL
// that the program has not seen. A group that a directory of the host's passes on stays.
func TestModesAreWhatTheyWereInside(t *testing.T) {
	l := newLab(t)
	l.check(os.Mkdir(l.host+"/old", 0o755))
	l.check(os.Mkdir(l.host+"/group", 0o755))
	l.check(os.Chmod(l.host+"/group", 0o755|os.ModeSetgid))
	l.write(l.host, "changed", "old")
	acl := "\x02\x00\x00\x00" + // for user::rwx, user:4711:rwx, group::r-x, mask::rwx, other::r-x
		"\x01\x00\x07\x00\xff\xff\xff\xff\x02\x00\x07\x00\x67\x12\x00\x00\x04\x00\x05\x00\xff\xff\xff\xff" +
		"\x10\x00\x07\x00\xff\xff\xff\xff\x20\x00\x05\x00\xff\xff\xff\xff"
	err := unix.Setxattr(l.host, "system.posix_acl_default", []byte(acl), 0)
	need.Fact(t, err != unix.EOPNOTSUPP, "a file system with access control lists")
	l.check(err)
	l.begin()
	modes := map[string]os.FileMode{"f": 0o640, "sticky": 0o777 | os.ModeSticky, "sticky/f": 0o604, "shut": 0o511,
		"old": 0o755 | os.ModeSticky, "group": 0o750, "group/sub": 0o750, "changed": 0o644}
	for _, d := range []string{"sticky", "shut", "old", "group/sub"} {
		l.check(os.MkdirAll(l.upper+"/"+d, 0o755))
	}
	for _, f := range []string{"f", "sticky/f", "changed"} {
		l.write(l.upper, f, "in "+f)
	}
	for name, mode := range modes {
		l.check(os.Chmod(l.upper+"/"+name, mode))
	}
	modes["group"] |= os.ModeSetgid
	modes["group/sub"] |= os.ModeSetgid
	_, err = Apply(l.scan(), l.opt())
	l.check(err)
	for name, mode := range modes {
		info, err := os.Stat(l.host + "/" + name)
		l.check(err)
		if got := info.Mode() &^ os.ModeDir; got != mode {
			t.Errorf("%s: %v, want %v", name, got, mode)
		}
		for _, attr := range acls {
			if _, err := unix.Lgetxattr(l.host+"/"+name, attr, nil); err != unix.ENODATA {
				t.Errorf("%s has %s: %v", name, attr, err)
			}
		}
	}
	if left := l.scan(); len(left) > 0 {
		t.Errorf("left after all was applied:\n%s", l.text(left))
	}
	// The control: what somebody else makes there has it.
	l.write(l.host, "theirs", "")
	if _, err := unix.Lgetxattr(l.host+"/theirs", acls[0], nil); err != nil {
		t.Errorf("a file of the host's has no list: %v", err)
	}
}

// What not even its owner may change is named before anything is done: a file, a directory, what lies below one that
// goes. The control is beside each.
func TestUnchangeable(t *testing.T) {
	flip := func(p string, flag int) error {
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		return errors.Join(err, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags^flag))
	}
	l := newLab(t)
	const immutable, appends = unix.STATX_ATTR_IMMUTABLE, unix.STATX_ATTR_APPEND // as FS_IMMUTABLE_FL and FS_APPEND_FL
	fixed := map[string]int{"f": immutable, "log": appends, "mode": immutable, "logs": appends, "gone/f": immutable}
	for _, f := range []string{"f", "log", "mode", "logs/f", "gone/f", "free", "also/f"} {
		l.write(l.host, f, "old")
	}
	l.begin()
	for _, f := range []string{"f", "log", "logs/new", "free"} {
		l.write(l.upper, f, "in")
	}
	l.write(l.upper, "mode", "old")
	l.check(os.Chmod(l.upper+"/mode", 0o600))
	l.whiteout("gone")
	l.whiteout("also")
	for name, what := range fixed {
		err := flip(l.host+"/"+name, what)
		need.Fact(t, err == nil, "the right to make files immutable, and a file system that can")
		t.Cleanup(func() { _ = flip(l.host+"/"+name, what) })
	}
	list := l.scan()
	if len(list) != 7 || strings.Count(l.text(list), "! broken: ") != 5 || strings.Count(l.text(list), "chattr(1)") != 5 {
		t.Errorf("want all but two held:\n%s", l.text(list))
	}
	opt := l.opt()
	opt.Force, opt.Skip = true, true
	if res, err := Apply(list, opt); err != nil || res.Applied != 2 || l.read("free") != "in" {
		t.Errorf("%+v, %v", res, err)
	}
}
