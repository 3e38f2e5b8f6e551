package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// tree is a file system made of values: a path ending in "/" is a directory, a value that is not empty
// the text of a link, anything else a file.
type tree map[string]string

func (t tree) Lstat(p string) (Stat, error) {
	ino := uint64(len(p)) + 1
	if text, ok := t[p]; ok {
		if text != "" {
			return Stat{Type: Link, Ino: ino}, nil
		}
		return Stat{Type: File, Ino: ino}, nil
	}
	if _, ok := t[strings.TrimSuffix(p, "/")+"/"]; ok || p == "/" {
		return Stat{Type: Dir, Ino: ino}, nil
	}
	if above := path.Dir(p); above != p {
		if text, ok := t[above]; ok && text == "" {
			return Stat{}, &os.PathError{Op: "lstat", Path: p, Err: syscall.ENOTDIR}
		}
	}
	return Stat{}, &os.PathError{Op: "lstat", Path: p, Err: syscall.ENOENT}
}

func (t tree) Readlink(p string) (string, error) { return t[p], nil }

var example = tree{"/a/": "", "/a/b/": "", "/a/b/f": "", "/l": "a/b", "/abs": "/a/b", "/up": "a/../a/./b/",
	"/a/b/back": "../..", "/loop": "loop", "/m1": "m2", "/m2": "m1",
	"/dangling": "a/nowhere", "/file": "", "/tofile": "file", "/a/link": "/l/f"}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		in, want string
		err      error
		links    []string
	}{
		{"/", "/", nil, nil}, {"//", "/", nil, nil}, {"/.", "/", nil, nil}, {"/..", "/", nil, nil}, {"/../..", "/", nil, nil},
		{"/a", "/a", nil, nil}, {"/a/", "/a", nil, nil}, {"//a///b/./", "/a/b", nil, nil}, {"/a/b/..", "/a", nil, nil},
		{"/a/../a/b/f", "/a/b/f", nil, nil},
		{"/l", "/a/b", nil, []string{"/l"}}, {"/l/f", "/a/b/f", nil, []string{"/l"}}, {"/l/..", "/a", nil, []string{"/l"}},
		{"/abs/f", "/a/b/f", nil, []string{"/abs"}},
		{"/up/f", "/a/b/f", nil, []string{"/up"}}, {"/a/b/back", "/", nil, []string{"/a/b/back"}}, {"/a/b/back/l/back/file",
			"/file", nil, []string{"/a/b/back", "/l", "/a/b/back"}},
		{"/a/link", "/a/b/f", nil, []string{"/a/link", "/l"}}, {"/tofile", "/file", nil, []string{"/tofile"}},
		{"/nowhere", "/nowhere", syscall.ENOENT, nil}, {"/a/nowhere/x/y", "/a/nowhere/x/y", syscall.ENOENT, nil},
		{"/dangling", "/a/nowhere", syscall.ENOENT, []string{"/dangling"}}, {"/dangling/x", "/a/nowhere/x", syscall.ENOENT,
			[]string{"/dangling"}},
		{"/loop", "", syscall.ELOOP, nil}, {"/m1/x", "", syscall.ELOOP, nil}, {"/file/x", "", syscall.ENOTDIR, nil},
		{"/tofile/x", "", syscall.ENOTDIR, nil}, {"/a/b/f/g/..", "", syscall.ENOTDIR, nil},
		// The kernel refuses these too: what looks like the directory of a file is none.
		{"/file/", "", syscall.ENOTDIR, nil}, {"/file/..", "", syscall.ENOTDIR, nil}, {"/file/.", "", syscall.ENOTDIR, nil},
		{"/a/b/f/../f", "", syscall.ENOTDIR, nil},
	} {
		canon, links, _, err := Resolve(example, c.in)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", c.in, err, c.err)
			continue
		}
		if c.err == nil || c.err == syscall.ENOENT {
			if canon != c.want {
				t.Errorf("%s leads to %s, want %s", c.in, canon, c.want)
			}
			var names []string
			for _, l := range links {
				names = append(names, l.Path)
			}
			if !reflect.DeepEqual(names, c.links) {
				t.Errorf("%s passes %q, want %q", c.in, names, c.links)
			}
		}
	}
	if _, _, _, err := Resolve(example, "a/b"); err == nil {
		t.Error("a relative path is resolved")
	}
	if _, _, _, err := Resolve(example, ""); err == nil {
		t.Error("the empty path is resolved")
	}
}

// The walk must agree with the kernel's on a real tree.
func TestResolveAgreesWithKernel(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"a/b", "c"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(top+"/a/b/f", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"l": "a/b", "a/up": "../c", "c/abs": top + "/l", "loop": "loop",
		"dang": "c/none", "slash": "a/b/"} {
		if err := os.Symlink(text, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, rel := range []string{"a", "a/b/f", "l/f", "l/../up", "l/../up/abs/f", "c/abs/../up/../l", "loop", "dang",
		"slash/f", "a/b/f/x", "c//./abs", "slash/../.."} {
		p := top + "/" + rel
		canon, _, st, err := Resolve(FS{}, p)
		var want syscall.Stat_t
		kernel := syscall.Stat(p, &want)
		if (err == nil) != (kernel == nil) || err != nil && !errors.Is(err, kernel) {
			t.Errorf("%s: %v, the kernel says %v", rel, err, kernel)
			continue
		}
		if err == nil && (st.Ino != want.Ino || canon != mustEval(t, p)) {
			t.Errorf("%s leads to %s (inode %d), the kernel says %s (%d)", rel, canon, st.Ino, mustEval(t, p), want.Ino)
		}
	}
}

func mustEval(t *testing.T, p string) string {
	t.Helper()
	// By descriptor, because filepath.EvalSymlinks cleans ".." before it follows links.
	f, err := os.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestReadDirIsSortedAndTyped(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"b", "a\nb", "\xff", "..."} {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	got, err := FS{}.ReadDir(dir)
	want := []Entry{{"...", File}, {"a\nb", File}, {"b", File}, {"d", Dir}, {"l", Link}, {"\xff", File}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := (FS{}).ReadDir(dir + "/none"); !NotExist(err) {
		t.Errorf("got %v, want ENOENT", err)
	}
	if _, err := (FS{}).ReadDir(dir + "/b"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("got %v, want ENOTDIR", err)
	}
}

func TestReadDirReadsManyNames(t *testing.T) {
	dir := t.TempDir()
	for i := range 1000 {
		if err := os.WriteFile(fmt.Sprintf("%s/%s-%d", dir, strings.Repeat("n", 200), i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := (FS{}).ReadDir(dir); err != nil || len(got) != 1000 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

func TestCacheAnswersAsTheFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/d/e", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/f", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := NewCache(nil)
	_, _ = c.ReadDir(dir) // from here on missing names are known without asking
	for _, p := range []string{"/", dir, dir + "/d", dir + "/d/e", dir + "/f", dir + "/none", dir + "/none/x", dir +
		"/f/x", dir + "/d/none/x"} {
		for range 2 {
			st, err := c.Lstat(p)
			want, wantErr := FS{}.Lstat(p)
			if st != want || (err == nil) != (wantErr == nil) || NotExist(err) != NotExist(wantErr) {
				t.Errorf("%s: %+v %v, want %+v %v", p, st, err, want, wantErr)
			}
		}
	}
}

func FuzzResolve(f *testing.F) {
	for p := range example {
		f.Add(p, "l")
	}
	f.Fuzz(func(t *testing.T, p, text string) {
		fs := tree{"/a/": "", "/a/f": "", "/x": text}
		canon, links, _, err := Resolve(fs, p)
		if err == nil && (path.Clean(canon) != canon || !strings.HasPrefix(canon, "/")) {
			t.Fatalf("%q leads to %q, which is not canonical", p, canon)
		}
		if err == nil {
			if st, lerr := fs.Lstat(canon); lerr != nil || st.Type == Link {
				t.Fatalf("%q leads to %q, which is %v, %v", p, canon, st, lerr)
			}
		}
		if len(links) > maxLinks {
			t.Fatalf("%d links", len(links))
		}
	})
}

// TestCacheFollowsNoNewLink: what was a directory when it was looked at is not read through a link that has taken its
// place, and that is noticed. What was a link then is followed, and a file system that keeps nothing follows both.
func TestCacheFollowsNoNewLink(t *testing.T) {
	top := mustEval(t, t.TempDir())
	at, other := top+"/at", top+"/other"
	for _, err := range []error{os.MkdirAll(at+"/d", 0o755), os.MkdirAll(other+"/d", 0o755),
		os.WriteFile(at+"/d/ours", []byte("ours"), 0o600), os.WriteFile(other+"/d/theirs", []byte("theirs"), 0o600),
		os.WriteFile(other+"/d/ours", []byte("theirs"), 0o600), os.Symlink("other", top+"/link")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(fs interface {
		ReadDir(p string) ([]Entry, error)
		Peek(p string, off int64, n int) ([]byte, error)
		Stamp(p string) (Stamp, error)
		Lstat(p string) (Stat, error)
	}, dir string) (text string) {
		list, _ := fs.ReadDir(dir)
		for _, e := range list {
			text += e.Name + " "
		}
		b, _ := fs.Peek(dir+"/ours", 0, 100)
		if st, err := fs.Stamp(dir + "/ours"); err == nil {
			text += fmt.Sprint(st.Size, " ")
		}
		if _, err := fs.Lstat(dir + "/ours"); err == nil {
			text += "there "
		}
		return text + string(b)
	}
	const theirs = "ours theirs 6 there theirs"
	linked, listed, stated := NewCache(nil), NewCache(nil), NewCache(nil)
	if got := read(linked, top+"/link/d"); got != theirs || linked.Exchanged() != "" {
		t.Errorf("through a link: %q, exchanged %q", got, linked.Exchanged())
	}
	_, _ = listed.ReadDir(top)
	_, _ = listed.ReadDir(at)
	_, _, _, _ = Resolve(stated, at+"/d")
	for _, err := range []error{os.Rename(at, top+"/away"), os.Symlink("other", at)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*Cache{"listed": listed, "stated": stated} { // where it stays
		if got := read(c, at+"/d"); got != "" || c.Exchanged() != at+"/d" {
			t.Errorf("%s: %q, exchanged %q", name, got, c.Exchanged())
		}
	}
	fresh := NewCache(nil)
	_, _ = fresh.ReadDir(top)
	if got := read(fresh, at+"/d"); got != theirs || fresh.Exchanged() != "" {
		t.Errorf("a link from the start: %q, exchanged %q", got, fresh.Exchanged())
	}
	if got := read(FS{}, at+"/d"); got != theirs { // the control
		t.Errorf("without a cache: %q", got)
	}
	if st, text, err := PeekPlain(top+"/away/d/ours", 100); err != nil || string(text) != "ours" || st.Size != 4 {
		t.Errorf("plain: %q, %+v, %v", text, st, err)
	}
	for _, p := range []string{at + "/d/ours", at, at + "/d"} {
		if _, text, err := PeekPlain(p, 100); err == nil {
			t.Errorf("plain, through a link: %q", text)
		}
	}
}

// TestCacheWaitsForADirectory: one that somebody exchanges with a link all the time is read whenever it is there.
func TestCacheWaitsForADirectory(t *testing.T) {
	top := mustEval(t, t.TempDir())
	for _, err := range []error{os.MkdirAll(top+"/at/d", 0o755), os.MkdirAll(top+"/other/d", 0o755),
		os.WriteFile(top+"/at/d/ours", nil, 0o600), os.WriteFile(top+"/other/d/theirs", nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(fs interface {
		ReadDir(p string) ([]Entry, error)
	}) string {
		l, err := fs.ReadDir(top + "/at/d")
		return fmt.Sprint(l, err)
	}
	ours := list(FS{})
	var stop atomic.Bool
	done := make(chan struct{})
	known := make([]*Cache, 200)
	for i := range known {
		known[i] = NewCache(nil)
		_, _ = known[i].ReadDir(top)
	}
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = os.Rename(top+"/at", top+"/was")
			_ = os.Symlink("other", top+"/at")
			_ = os.Remove(top + "/at")
			_ = os.Rename(top+"/was", top+"/at")
		}
	}()
	theirs := 0
	for i := 0; i < len(known) || theirs == 0; i++ { // until a link was there: the control
		if got := list(FS{}); strings.Contains(got, "theirs") {
			theirs++
		}
		if i >= len(known) {
			continue
		}
		if got := list(known[i]); got != ours && !strings.Contains(got, "no such file") || known[i].Exchanged() != "" {
			t.Fatalf("%s, exchanged %q", got, known[i].Exchanged())
		}
	}
	stop.Store(true)
	<-done
}

// TestCacheNoticesALink: so it is where a directory that was listed has become a link before it was looked at.
func TestCacheNoticesALink(t *testing.T) {
	top, c := mustEval(t, t.TempDir()), NewCache(nil)
	if err := os.Mkdir(top+"/at", 0o755); err != nil {
		t.Fatal(err)
	}
	_, _ = c.ReadDir(top)
	for _, err := range []error{os.Remove(top + "/at"), os.Symlink("/", top+"/at")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := Resolve(c, top+"/at"); err != nil || c.Exchanged() != top+"/at" {
		t.Errorf("%v, exchanged %q", err, c.Exchanged())
	}
}

// ByLink looks at a list first: what it says is what each walk would say.
func TestByLink(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(top+"/dir/deep", 0o755), os.WriteFile(top+"/file", nil, 0o644),
		os.Symlink("dir", top+"/link"), os.Symlink("none", top+"/dangling"),
		os.Symlink("deep", top+"/dir/inner")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"file": false, "dir": false, "dir/deep": false, "none": false, "none/x": false,
		"dir/none": false, "file/x": false, "link": true, "link/deep": true, "link/none": true, "dangling": true,
		"dangling/x": true, "dir/inner": true, "dir/inner/none": true} {
		if got := ByLink(FS{}, top, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if _, links, _, _ := Resolve(FS{}, top+"/"+name); len(links) > 0 != want {
			t.Errorf("%s: a walk finds the links %v", name, links) // the control
		}
	}
}
