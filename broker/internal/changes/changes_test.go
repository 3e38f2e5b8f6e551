//go:build linux

package changes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/atomicfile"
)

// lab is a host directory and a layer over it, as a session leaves them.
type lab struct {
	t         *testing.T
	host, ses string
	upper     string
	layer     Layer
}

func newLab(t *testing.T, hide ...string) *lab {
	l := &lab{t: t, host: filepath.Join(t.TempDir(), "p"), ses: t.TempDir()}
	l.upper = l.ses + "/overlay/1/upper"
	l.check(os.MkdirAll(l.host, 0o755))
	l.check(os.MkdirAll(l.upper, 0o700))
	l.layer = Layer{Target: l.host, Upper: l.upper, Hide: hide, Why: "--ephemeral", session: l.ses, existed: true}
	return l
}

func (l *lab) check(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) write(top, name, text string) {
	l.t.Helper()
	p := filepath.Join(top, name)
	l.check(os.MkdirAll(filepath.Dir(p), 0o755))
	l.check(os.WriteFile(p, []byte(text), 0o644))
}

func (l *lab) whiteout(name string) {
	l.t.Helper()
	p := filepath.Join(l.upper, name)
	l.check(os.MkdirAll(filepath.Dir(p), 0o755))
	l.check(unix.Mknod(p, unix.S_IFCHR, 0))
}

// begin marks the moment at which the session began: what the host has now is old.
func (l *lab) begin() {
	l.t.Helper()
	l.layer.since = l.stamp()
	l.check(noteNames([]Layer{l.layer}, l.ses, never))
	for !after(l.stamp(), l.layer.since) { // the kernel's clock of files is coarse
		time.Sleep(time.Millisecond)
	}
}

// stamp is the time of a file that is made now.
func (l *lab) stamp() unix.Timespec {
	l.t.Helper()
	l.check(os.WriteFile(l.ses+"/stamp", []byte("x"), 0o600))
	var st unix.Stat_t
	l.check(unix.Stat(l.ses+"/stamp", &st))
	return st.Mtim
}

// never is a program that has ended.
func never() bool { return false }

func (l *lab) scan() []Change {
	l.t.Helper()
	list, err := Scan([]Layer{l.layer}, nil)
	l.check(err)
	return list
}

func (l *lab) text(list []Change) string {
	var b strings.Builder
	for i := range list {
		b.WriteString(list[i].In(l.host) + "\n")
	}
	return b.String()
}

func (l *lab) read(name string) string {
	b, err := os.ReadFile(filepath.Join(l.host, name))
	if err != nil {
		return "error: " + errors.Unwrap(err).Error()
	}
	return string(b)
}

func (l *lab) opt() Options { return Options{Dir: l.ses, SID: "s"} }

func TestScanAndApply(t *testing.T) {
	l := newLab(t)
	for _, f := range []string{"same", "changed", "gone", "mode", "d/in", "d/deep/x", "moved-from", "todir", "fromdir/x"} {
		l.write(l.host, f, "old "+f)
	}
	l.begin()
	l.write(l.upper, "same", "old same")
	l.write(l.upper, "changed", "new")
	l.whiteout("gone")
	l.write(l.upper, "mode", "old mode")
	l.check(os.Chmod(l.upper+"/mode", 0o755))
	l.whiteout("d")
	l.whiteout("moved-from")
	l.write(l.upper, "moved-to", "old moved-from")
	l.write(l.upper, "todir/x", "x")
	l.write(l.upper, "fromdir", "file now")
	l.check(os.Symlink("changed", l.upper+"/link"))
	l.write(l.upper, "locked", "no owner may read this")
	l.check(os.Chmod(l.upper+"/locked", 0))
	list := l.scan()
	want := `M  changed
D  d/ (3 below)
T  fromdir (mode 0755 -> 0644)
D  gone
A  link -> changed
A  locked
P  mode (mode 0644 -> 0755)
R  moved-from -> moved-to
T  todir/ (mode 0644 -> 0755)
A  todir/x
`
	if got := l.text(Renames(list)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	res, err := Apply(list, l.opt())
	if err != nil || res.Applied != len(list) {
		t.Fatalf("%+v, %v", res, err)
	}
	for name, want := range map[string]string{"changed": "new", "gone": "error: no such file or directory",
		"d": "error: no such file or directory", "mode": "old mode", "moved-to": "old moved-from", "todir/x": "x",
		"fromdir": "file now", "link": "new", "same": "old same"} {
		if got := l.read(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if info, err := os.Stat(l.host + "/locked"); err != nil || info.Mode() != 0 {
		t.Errorf("locked: %v, %v", info, err)
	}
	if left := l.scan(); len(left) > 0 {
		t.Errorf("left after all was applied:\n%s", l.text(left))
	}
	entries, _ := os.ReadDir(l.host)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".sbx") {
			t.Errorf("%s is left on the host", e.Name())
		}
	}
}

// Each row is something that is not applied without being told; next to each stands an ordinary change that
// is, so that a refusal of everything would fail.
func TestHostileLayers(t *testing.T) {
	for name, c := range map[string]struct {
		make func(l *lab)
		want string
		path string // must stay as it was on the host
	}{
		"git hook": {func(l *lab) { l.write(l.upper, ".git/hooks/pre-commit", "x") }, "guarded",
			".git/hooks/pre-commit"},
		"nested hook": {func(l *lab) { l.write(l.upper, "sub/.git/hooks/post-checkout", "x") }, "guarded",
			"sub/.git/hooks/post-checkout"},
		"submodule": {func(l *lab) { l.write(l.upper, ".git/modules/a/b/hooks/x", "x") }, "guarded",
			".git/modules/a/b/hooks/x"},
		"git config": {func(l *lab) { l.write(l.upper, ".git/config", "[core]\n\tfsmonitor = /tmp/x\n") }, "guarded",
			".git/config"},
		"git file":      {func(l *lab) { l.write(l.upper, "sub/.git", "gitdir: /tmp/evil\n") }, "guarded", "sub/.git"},
		"direnv":        {func(l *lab) { l.write(l.upper, ".envrc", "x") }, "guarded", ".envrc"},
		"editor":        {func(l *lab) { l.write(l.upper, ".vscode/tasks.json", "x") }, "guarded", ".vscode/tasks.json"},
		"agent":         {func(l *lab) { l.write(l.upper, "AGENTS.md", "x") }, "guarded", "AGENTS.md"},
		"env":           {func(l *lab) { l.write(l.upper, ".env", "x") }, "secrets", ".env"},
		"hidden":        {func(l *lab) { l.write(l.upper, "conf/hidden", "x") }, "secrets", "conf/hidden"},
		"link out":      {func(l *lab) { l.check(os.Symlink("../x", l.upper+"/l")) }, "links", "l"},
		"link absolute": {func(l *lab) { l.check(os.Symlink("/root/x", l.upper+"/l")) }, "links", "l"},
		"link by link":  {func(l *lab) { l.check(os.Symlink("ordinary/../../x", l.upper+"/l")) }, "links", "l"},
		"pipe":          {func(l *lab) { l.check(unix.Mkfifo(l.upper+"/pipe", 0o666)) }, "special", "pipe"},
		"stage's name": {func(l *lab) { l.write(l.upper, ".sbx-replace-apply-s-0", "x") }, "special",
			".sbx-replace-apply-s-0"},
		"below it": {func(l *lab) { l.write(l.upper, ".sbx-replace-apply-s-1/f", "x") }, "special",
			".sbx-replace-apply-s-1/f"},
		"deletes guard":  {func(l *lab) { l.whiteout("keep") }, "guarded", "keep/.git/hooks/real"},
		"deletes secret": {func(l *lab) { l.whiteout("conf") }, "secrets", "conf/hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "conf/hidden")
			l.write(l.host, "conf/hidden", "SECRET")
			l.write(l.host, "keep/.git/hooks/real", "hook")
			l.begin()
			before := l.read(c.path)
			l.write(l.upper, "plain", "x")
			c.make(l)
			list := l.scan()
			if !strings.Contains(l.text(list), "! "+c.want) {
				t.Errorf("not marked as %s:\n%s", c.want, l.text(list))
			}
			var r *Refused
			if _, err := Apply(list, l.opt()); !errors.As(err, &r) {
				t.Fatalf("applied: %v", err)
			}
			if got := l.read("plain"); !strings.HasPrefix(got, "error") {
				t.Error("something was applied although it was refused")
			}
			opt := l.opt()
			opt.Skip = true
			if _, err := Apply(list, opt); err != nil {
				t.Fatal(err)
			}
			if got := l.read(c.path); got != before {
				t.Errorf("%s: %q, want %q", c.path, got, before)
			}
			if got := l.read("plain"); got != "x" {
				t.Errorf("the ordinary change was not applied: %q", got)
			}
			if c.want == "special" {
				return
			}
			opt.Allow = []Risk{Guarded, Secret, Outward} // the control: told, it does it
			if _, err := Apply(l.scan(), opt); err != nil {
				t.Fatal(err)
			}
			if left := l.scan(); len(left) > 0 {
				t.Errorf("left although everything was allowed:\n%s", l.text(left))
			}
		})
	}
}

func TestHarmlessLinksAndModes(t *testing.T) {
	l := newLab(t)
	l.begin()
	l.write(l.upper, "a/b", "x")
	for name, text := range map[string]string{"l1": "a/b", "a/l2": "../a/b", "l3": "/usr/bin/env", "a/l4": "./b"} {
		l.check(os.Symlink(text, filepath.Join(l.upper, name)))
	}
	l.write(l.upper, "suid", "x")
	l.check(os.Chmod(l.upper+"/suid", 0o755|os.ModeSetuid|os.ModeSetgid))
	list := l.scan()
	if _, err := Apply(list, l.opt()); err != nil {
		t.Fatalf("%v\n%s", err, l.text(list))
	}
	info, err := os.Stat(l.host + "/suid")
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("%v %v, want 0755 without set-id bits", info.Mode(), err)
	}
	if !strings.Contains(l.text(list), "suid (executable) (without its set-id bit)") {
		t.Errorf("nothing is said of the bits:\n%s", l.text(list))
	}
}

// A directory of the host's that has become a link leads nowhere.
func TestSwappedDirectory(t *testing.T) {
	l := newLab(t)
	out := t.TempDir()
	l.write(l.host, "d/x", "old")
	l.begin()
	l.write(l.upper, "d/x", "new")
	list := l.scan()
	l.check(os.Rename(l.host+"/d", l.host+"/d-old"))
	l.check(os.Symlink(out, l.host+"/d"))
	l.write(out, "x", "outside")
	if _, err := Apply(list, l.opt()); !errors.Is(err, unix.ELOOP) {
		t.Errorf("got %v, want ELOOP", err)
	}
	if b, _ := os.ReadFile(out + "/x"); string(b) != "outside" {
		t.Errorf("written through a link: %q", b)
	}
}

// TestHolesTakeNoSpace: what apply refuses for lack of space it counts in blocks, so it writes no others. The data
// between and around the holes is the control.
func TestHolesTakeNoSpace(t *testing.T) {
	l := newLab(t)
	l.begin()
	const size = 64 << 20
	want := map[string]int64{"end": size - 4, "middle": size / 2, "start": 0, "none": -1}
	for name, at := range want {
		l.write(l.upper, name, "")
		f, err := os.OpenFile(filepath.Join(l.upper, name), os.O_WRONLY, 0)
		l.check(err)
		l.check(f.Truncate(size))
		if at >= 0 {
			_, err = f.WriteAt([]byte("data"), at)
			l.check(err)
		}
		l.check(f.Close())
	}
	_, err := Apply(l.scan(), Options{Dir: l.ses})
	l.check(err)
	for name := range want {
		p := filepath.Join(l.host, name)
		old, err := os.ReadFile(filepath.Join(l.upper, name))
		l.check(err)
		now, err := os.ReadFile(p)
		l.check(err)
		if !bytes.Equal(old, now) {
			t.Errorf("%s has other contents", name)
		}
		var st unix.Stat_t
		if l.check(unix.Stat(p, &st)); st.Blocks*512 > size/4 {
			t.Errorf("%s takes %d bytes on the host", name, st.Blocks*512)
		}
	}
	if list := l.scan(); len(list) > 0 {
		t.Errorf("still different:\n%s", l.text(list))
	}
}

// TestNamesForAMomentAreReserved: a program that runs meanwhile in the same project could open a file under its name
// for a moment, and write to it under its next one, which may be guarded.
func TestNamesForAMomentAreReserved(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"replaced", "deleted", "olddir/f"} {
		l.write(l.host, name, "old")
	}
	l.begin()
	l.write(l.upper, "replaced", "other")
	l.write(l.upper, ".envrc", "new")
	l.whiteout("deleted")
	l.whiteout("olddir")
	events, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	l.check(err)
	defer unix.Close(events)
	_, err = unix.InotifyAddWatch(events, l.host, unix.IN_CREATE|unix.IN_MOVE)
	l.check(err)
	opt := l.opt()
	opt.Allow = []Risk{Guarded}
	_, err = Apply(l.scan(), opt)
	l.check(err)
	var buf [16 << 10]byte
	n, err := unix.Read(events, buf[:])
	l.check(err)
	moments := 0
	for at := 0; at < n; {
		size := int(binary.NativeEndian.Uint32(buf[at+12:])) // of the name that follows, see inotify(7)
		mask := binary.NativeEndian.Uint32(buf[at+4:])
		name := strings.TrimRight(string(buf[at+16:at+16+size]), "\x00")
		at += 16 + size
		switch {
		case strings.HasPrefix(name, atomicfile.Reserved):
			moments++
		case mask&unix.IN_CREATE != 0 || !slices.Contains([]string{"replaced", ".envrc", "deleted", "olddir"}, name):
			t.Errorf("%q was there for a moment, which programs may write to", name)
		}
	}
	if moments < 4 {
		t.Errorf("%d events of names for a moment", moments)
	}
}

func TestHostChangedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		inside, host func(l *lab)
	}{
		"modified":        {func(l *lab) { l.write(l.upper, "f", "in") }, func(l *lab) { l.write(l.host, "f", "out") }},
		"deleted inside":  {func(l *lab) { l.whiteout("f") }, func(l *lab) { l.write(l.host, "f", "out") }},
		"made by both":    {func(l *lab) { l.write(l.upper, "n", "in") }, func(l *lab) { l.write(l.host, "n", "out") }},
		"below a deleted": {func(l *lab) { l.whiteout("d") }, func(l *lab) { l.write(l.host, "d/sub/new", "out") }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.host, "f", "old")
			l.write(l.host, "d/x", "old")
			l.begin()
			c.inside(l)
			if list := l.scan(); list[0].Changed {
				t.Fatalf("said to be changed before it was: %s", list[0].String())
			}
			c.host(l)
			list := l.scan()
			var r *Refused
			if _, err := Apply(list, l.opt()); !errors.As(err, &r) ||
				!strings.Contains(l.text(r.Held), "after the session began") {
				t.Fatalf("%v\n%s", err, l.text(list))
			}
			opt := l.opt()
			opt.Force = true
			if _, err := Apply(list, opt); err != nil {
				t.Fatal(err)
			}
			if left := l.scan(); len(left) > 0 {
				t.Errorf("left after --force:\n%s", l.text(left))
			}
		})
	}
}

// Between the comparison and the change the host may still act.
func TestHostChangesDuringApply(t *testing.T) {
	for name, change := range map[string]func(l *lab){
		"modified": func(l *lab) { l.write(l.host, "f", "other text") },
		"replaced": func(l *lab) { l.write(l.host, "g", "other"); l.check(os.Rename(l.host+"/g", l.host+"/f")) },
		"deleted":  func(l *lab) { l.check(os.Remove(l.host + "/f")) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.host, "f", "old")
			l.begin()
			l.write(l.upper, "f", "in")
			list := l.scan()
			change(l)
			before := l.read("f")
			if _, err := Apply(list, l.opt()); err == nil {
				t.Error("applied over what was not compared")
			}
			if got := l.read("f"); got != before {
				t.Errorf("%q, want %q", got, before)
			}
		})
	}
}

func TestRecover(t *testing.T) {
	l := newLab(t)
	l.write(l.host, "f", "old")
	var st unix.Stat_t
	l.check(unix.Lstat(l.host+"/f", &st))
	in := intent{Target: plan.Bytes(l.host), Dir: ".", Name: "f", Temp: ".sbx-replace-apply-s-0",
		stamp: stampOf(&st)}
	killed := func() {
		j, err := openJournal(l.ses)
		l.check(err)
		l.check(j.note(in))
		_, _ = j.f.WriteString(`{"target":"/cut`)
		j.f.Close()
	}
	temp := l.host + "/.sbx-replace-apply-s-0"
	killed()
	l.write(l.host, ".sbx-replace-apply-s-0", "half a copy")
	l.check(Recover(l.ses))
	if _, err := os.Lstat(temp); err == nil || l.read("f") != "old" {
		t.Error("killed before the exchange: our copy is left, or the host's file is gone")
	}
	killed()
	l.check(os.Rename(l.host+"/f", temp))
	l.write(l.host, "f", "new")
	l.check(Recover(l.ses))
	if _, err := os.Lstat(temp); err == nil || l.read("f") != "new" {
		t.Error("killed after the exchange: what was replaced is left")
	}
	killed()
	l.check(os.WriteFile(temp, []byte("unknown"), 0o600))
	l.check(unix.Lstat(temp, &st))
	in.Dev, in.Ino = st.Dev, st.Ino
	l.check(os.Remove(l.ses + "/apply.jsonl"))
	killed()
	if err := Recover(l.ses); err == nil || !strings.Contains(err.Error(), "look at it") {
		t.Errorf("what the host changed in between is thrown away: %v", err)
	}
	if _, err := os.Lstat(temp); err != nil {
		t.Error(err)
	}
}

func TestCompareIsRight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() (out []string) {
		for range r.IntN(30) {
			out = append(out, fmt.Sprintf("%c\n", 'a'+r.IntN(5)))
		}
		return out
	}
	for range 3000 {
		a, b := text(), text()
		var old, now []string
		for _, e := range compare(a, b) {
			if e.op != '+' {
				old = append(old, e.line)
			}
			if e.op != '-' {
				now = append(now, e.line)
			}
		}
		if strings.Join(old, "") != strings.Join(a, "") || strings.Join(now, "") != strings.Join(b, "") {
			t.Fatalf("%q to %q: %q", a, b, compare(a, b))
		}
	}
	if got := compare([]string{"a", "b", "c"}, []string{"a", "c"}); len(got) != 3 || got[1] != (edit{'-', "b"}) {
		t.Errorf("%v", got)
	}
}

// TestObjectsThatGoAreCounted: git's own store is one line, and that says how much of it would be deleted: commits are
// lost with it. The control is a layer that only adds to it.
func TestObjectsThatGoAreCounted(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"ab/1", "ab/2", "cd/3"} {
		l.write(l.host, ".git/objects/"+name, "x")
	}
	l.begin()
	l.write(l.upper, ".git/objects/ef/4", "y")
	if got := strings.Join(Lines(l.scan(), l.host), "\n"); got != "*  .git/objects/ (2 names in git's own store)" {
		t.Error(got)
	}
	l.whiteout(".git/objects/ab")
	l.whiteout(".git/objects/cd/3")
	if got := strings.Join(Lines(l.scan(), l.host), "\n"); got !=
		"*  .git/objects/ (4 names in git's own store; deletes 4 of the host's)" {
		t.Error(got)
	}
}

func TestPatchText(t *testing.T) {
	l := newLab(t)
	l.write(l.host, "f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	l.begin()
	l.write(l.upper, "f", "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten")
	l.write(l.upper, ".env", "CANARY")
	var b bytes.Buffer
	for _, c := range l.scan() {
		c.Patch(&b, l.host, true)
	}
	want := "# A  .env  ! secrets: a name that is hidden in projects\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2,8 " +
		"+2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+ten\n\\ No newline at end of file\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Holes that two files have are not read: the largest file is compared at once. The controls are one that has something
// else in it, one that has it elsewhere, and one that is shorter.
func TestCompareHoles(t *testing.T) {
	dir := t.TempDir()
	open := func(name string, size int64, at int64, text string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			_, err = f.WriteAt([]byte(text), at)
		}
		if err == nil {
			err = f.Truncate(size)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	const huge = 8 << 40
	a := open("a", huge, 5<<40, "x")
	for name, want := range map[string]bool{"same": true, "other": false, "elsewhere": false, "shorter": false} {
		b := open(name, huge, 5<<40, "x")
		switch name {
		case "other":
			b = open(name, huge, 5<<40, "y")
		case "elsewhere":
			b = open(name, huge, 6<<40, "x")
		case "shorter":
			b = open(name, huge-1, 5<<40, "x")
		}
		same, err := sameContent(a, b)
		if err != nil || same != want {
			t.Errorf("%s: %v, %v", name, same, err)
		}
	}
}
