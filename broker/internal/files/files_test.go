//go:build linux

package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// do carries a request out, as the program inside does.
func do(t *testing.T, q Request, content string) (*Answer, error) {
	t.Helper()
	if err := q.Check(); err != nil {
		return nil, fault(codeRequest, "%v", err)
	}
	x := &tool{q: q, content: strings.NewReader(content)}
	a := &Answer{}
	return a, x.run(a)
}

// lab is a root with something outside of it.
func lab(t *testing.T) (root string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(top, "root")
	for _, d := range []string{"root/d/e", "outside"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"root/f": "inside\n", "root/d/f": "inside\n", "root/d/e/f": "deep\n",
		"outside/f": "outside\n", "root/bytes": "a\xff\x00b", "root/text": "aäb"} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"in": "d/f", "up": "../outside/f", "climbs": "d/../../outside/f",
		"abs": root + "/d/f", "absout": top + "/outside/f", "dirout": "../outside", "loop": "loop",
		"magic": "/proc/self/root", "dangling": "d/new"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func codeIs(t *testing.T, err error, want code) {
	t.Helper()
	if err == nil || faultOf(err).Code != want {
		t.Errorf("got error %v, want one with code %s", err, want)
	}
}

func TestRead(t *testing.T) {
	root := lab(t)
	for path, want := range map[string]string{"f": "inside\n", "in": "inside\n", "abs": "inside\n", "d/../f": "inside\n",
		"./d//e/../f": "inside\n", root + "/d/f": "inside\n", "bytes": "a\xff\x00b"} {
		a, err := do(t, Request{Op: Read, Path: plan.Bytes(path), Root: plan.Bytes(root)}, "")
		if err != nil || string(a.Content()) != want {
			t.Errorf("reading %s: %q, %v", path, a.Content(), err)
		}
	}
	for path, want := range map[string]code{"up": codeLink, "climbs": codeLink, "absout": codeLink, "dirout/f": codeLink,
		"../outside/f": codeLink, "loop": codeLink, filepath.Dir(root) + "/outside/f": codeLink, "magic/etc/passwd": codeLink,
		"d": codeKind, ".": codeKind, "fifo": codeKind, "none": codeAbsent, "f/x": codeKind, "f/": codeKind,
		"none/../f": codeAbsent, ".../f": codeAbsent} {
		a, err := do(t, Request{Op: Read, Path: plan.Bytes(path), Root: plan.Bytes(root)}, "")
		if err == nil {
			t.Errorf("reading %s gave %q", path, a.Content())
			continue
		}
		codeIs(t, err, want)
	}
	// What leads nowhere else is followed where the root is that of all, but no link of /proc.
	if a, err := do(t, Request{Op: Read, Path: plan.Bytes(root + "/absout"), Root: "/"}, ""); err != nil ||
		string(a.Content()) != "outside\n" {
		t.Errorf("reading below /: %v", err)
	}
	for _, path := range []string{"/proc/self/root/etc/passwd", "/proc/thread-self/cwd/f", "/dev/null", "/dev/stdin"} {
		if _, err := do(t, Request{Op: Read, Path: plan.Bytes(path), Root: "/"}, ""); err == nil {
			t.Errorf("reading %s worked", path)
		}
	}
	// A root on whose way is a link is somebody else's to choose.
	_, err := do(t, Request{Op: Read, Path: "f", Root: plan.Bytes(root + "/dirout")}, "")
	codeIs(t, err, codeLink)
}

// What is read in pieces is the whole, and no character is cut.
func TestReadPieces(t *testing.T) {
	root := lab(t)
	want, got := "", ""
	for i := range 5000 {
		want += string(rune('a'+i%26)) + "ä€😀"
	}
	if err := os.WriteFile(root+"/long", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	for off := int64(0); ; {
		a, err := do(t, Request{Op: Read, Path: "long", Root: plan.Bytes(root), Offset: off, Limit: 1001}, "")
		if err != nil || a.Text == nil {
			t.Fatal(err, "no text at", off)
		}
		got += string(*a.Text)
		if off += a.Bytes; !a.More {
			break
		}
	}
	if got != want {
		t.Error("the pieces are not the whole")
	}
}

func TestWrite(t *testing.T) {
	root := lab(t)
	if err := os.Chmod(root+"/f", 0o751); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(root + "/f")
	write := func(q Request, text string) error {
		q.Op, q.Root = Write, plan.Bytes(root)
		_, err := do(t, q, text)
		return err
	}
	check := func(name, want string) {
		t.Helper()
		if b, err := os.ReadFile(root + "/" + name); err != nil || string(b) != want {
			t.Errorf("%s has %q, %v", name, b, err)
		}
	}
	if err := write(Request{Path: "f"}, "new"); err != nil {
		t.Fatal(err)
	}
	check("f", "new")
	after, _ := os.Stat(root + "/f")
	if after.Mode() != before.Mode() || os.SameFile(before, after) {
		t.Errorf("replaced: mode %v, the same file %v", after.Mode(), os.SameFile(before, after))
	}
	if err := write(Request{Path: "f", InPlace: true}, "in"); err != nil {
		t.Fatal(err)
	}
	check("f", "in")
	if last, _ := os.Stat(root + "/f"); !os.SameFile(last, after) {
		t.Error("in place is another file")
	}
	// Through a link what it leads to is written, and the link stays.
	if err := write(Request{Path: "in"}, "through"); err != nil {
		t.Fatal(err)
	}
	check("d/f", "through")
	if to, _ := os.Readlink(root + "/in"); to != "d/f" {
		t.Error("the link is gone")
	}
	if err := write(Request{Path: "dangling"}, "x"); err != nil {
		t.Fatal(err)
	}
	check("d/new", "x")
	codeIs(t, write(Request{Path: "x/y/z"}, "x"), codeAbsent)
	if err := write(Request{Path: "x/y/z", Parents: true}, "x"); err != nil {
		t.Fatal(err)
	}
	check("x/y/z", "x")
	for path, want := range map[string]code{"up": codeLink, "absout": codeLink, "dirout/new": codeLink,
		"../outside/new": codeLink, "d": codeKind, "fifo": codeKind, "f/x": codeKind} {
		codeIs(t, write(Request{Path: plan.Bytes(path), Parents: true}, "x"), want)
	}
	codeIs(t, write(Request{Path: "f"}, strings.Repeat("x", MaxBytes+1)), codeSize)
	check("f", "in")
	check("../outside/f", "outside\n")
	onlyNamed(t, root)
}

// onlyNamed looks whether anything half made was left behind.
func onlyNamed(t *testing.T, root string) {
	t.Helper()
	_ = filepath.WalkDir(root, func(p string, _ os.DirEntry, _ error) error {
		if strings.Contains(p, ".sbx-") {
			t.Error("left behind:", p)
		}
		return nil
	})
}

func TestEdit(t *testing.T) {
	root := lab(t)
	edit := func(path, old, text string) error {
		_, err := do(t, Request{Op: Edit, Path: plan.Bytes(path), Root: plan.Bytes(root)}, string(Change(old, text)))
		return err
	}
	if err := edit("bytes", "a\xff", "\xfe"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(root + "/bytes"); string(b) != "\xfe\x00b" {
		t.Errorf("got %q", b)
	}
	if err := os.WriteFile(root+"/twice", []byte("o to to two two"), 0o644); err != nil {
		t.Fatal(err)
	}
	for old, says := range map[string]string{"two": "more than once", "o to": "more than once",
		"three": "does not have"} {
		err := edit("twice", old, "x")
		codeIs(t, err, codeConflict)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Error(err)
		}
	}
	codeIs(t, edit("twice", "", "x"), codeRequest)
	codeIs(t, edit("up", "outside", "x"), codeLink)
	codeIs(t, edit("none", "x", "y"), codeAbsent)
	onlyNamed(t, root)
}

// A file that changed after it was read is not replaced.
func TestEditOfWhatChanges(t *testing.T) {
	for _, changes := range []bool{false, true} {
		root := lab(t)
		x := &tool{q: Request{Op: Edit, Path: "f", Root: plan.Bytes(root)}, rel: "f"}
		w, err := newWalker(root)
		if err != nil {
			t.Fatal(err)
		}
		x.w = w
		p, _ := w.walk("f")
		old, _ := statAt(p)
		if changes {
			if err := os.WriteFile(root+"/f", []byte("another's"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err = x.replace(p, []byte("mine"), old, true)
		x.tidy()
		w.close()
		want := "mine"
		if changes {
			want = "another's"
			codeIs(t, err, codeConflict)
		} else if err != nil {
			t.Error(err)
		}
		if b, _ := os.ReadFile(root + "/f"); string(b) != want {
			t.Errorf("got %q", b)
		}
		onlyNamed(t, root)
	}
}

func TestListAndFind(t *testing.T) {
	root := lab(t)
	a, err := do(t, Request{Op: List, Path: "d", Root: plan.Bytes(root)}, "")
	if err != nil || !slices.Equal(a.Entries, []Entry{{"e", "directory"}, {"f", "file"}}) {
		t.Errorf("%v %v", a.Entries, err)
	}
	a, err = do(t, Request{Op: List, Root: plan.Bytes(root), Limit: 3}, "")
	if err != nil || len(a.Entries) != 3 || !a.More {
		t.Errorf("%v %v", a.Entries, err)
	}
	a, err = do(t, Request{Op: Find, Pattern: "[f]", Root: plan.Bytes(root)}, "")
	if err != nil || a.More || !slices.Equal(a.Entries, []Entry{{"d/e/f", "file"}, {"d/f", "file"}, {"f", "file"}}) {
		t.Errorf("%v %v", a.Entries, err)
	}
	a, err = do(t, Request{Op: Find, Pattern: "f", Root: plan.Bytes(root), Depth: 2}, "")
	if err != nil || len(a.Entries) != 2 || a.Skipped != 1 {
		t.Errorf("%v %v", a, err)
	}
	a, err = do(t, Request{Op: Find, Pattern: "*", Root: plan.Bytes(root), Limit: 2}, "")
	if err != nil || len(a.Entries) != 2 || !a.More {
		t.Errorf("%v %v", a, err)
	}
	_, err = do(t, Request{Op: List, Path: "f", Root: plan.Bytes(root)}, "")
	codeIs(t, err, codeKind)
	_, err = do(t, Request{Op: List, Path: "dirout", Root: plan.Bytes(root)}, "")
	codeIs(t, err, codeLink)
}

// The entries of an answer are as many as it has room for, and it says that there are more.
func TestEntriesFit(t *testing.T) {
	q := Request{Op: Find, Pattern: "*", Limit: maxEntries}
	if most := q.MaxAnswer(); most != 6*MaxBytes+1<<20 {
		t.Errorf("an answer may be of %d bytes", most)
	}
	a := &Answer{}
	l := (&tool{q: q}).listing(a)
	l.room = 1 << 20
	name := plan.Bytes(strings.Repeat("\x01", unix.PathMax))
	for l.add(Entry{name, "directory"}) {
	}
	text, err := json.Marshal(a.Entries)
	if err != nil || !a.More || len(text) > 1<<20 || len(text) < 1<<20-2*6*unix.PathMax {
		t.Errorf("%d entries of %d bytes, more: %v, %v", len(a.Entries), len(text), a.More, err)
	}
}

// Somebody exchanges a directory on the way for a link that leads out, and a file for one, as fast as they can: nothing
// from outside is read. SBX_SWAPS is how often a path is read meanwhile.
func TestSwappedPaths(t *testing.T) {
	swaps := 20_000
	if s := os.Getenv("SBX_SWAPS"); s != "" {
		var err error
		if swaps, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	root := lab(t)
	if err := os.Symlink("../outside/f", root+"/leaf"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/g", []byte("inside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	read := func(path string) (string, error) {
		x := &tool{q: Request{Op: Read, Path: plan.Bytes(path), Root: plan.Bytes(root)}}
		a := &Answer{}
		err := x.run(a)
		return string(a.Content()), err
	}
	paths := [...]string{"d/f", "g", "d/e/../f", "in", "dirout/f"}
	got, leaked := race(t, root, swaps, paths[:], read)
	t.Logf("%d reads while paths were swapped: %v", swaps, got)
	if leaked > 0 {
		t.Fatalf("%d of %d reads were of what lies outside", leaked, swaps)
	}
	if got["inside\n"] == 0 || got["error"] == 0 {
		t.Errorf("it was not both below the root and outside: %v", got)
	}
	// The control: who looks whether a path is a link that leads out, and then opens it, reads outside. On a busy machine
	// that takes more than one round.
	for round := 0; leaked == 0 && round < 50; round++ {
		_, leaked = race(t, root, 20_000, paths[:], func(path string) (string, error) {
			if to, err := filepath.EvalSymlinks(root + "/" + path); err != nil || !strings.HasPrefix(to, root+"/") {
				return "", fmt.Errorf("it leads out: %w", err)
			}
			b, err := os.ReadFile(root + "/" + path)
			return string(b), err
		})
	}
	if leaked == 0 {
		t.Error("the swaps did not even deceive who looks first: the test shows nothing")
	}
}

// race reads paths n times while others swap them, and counts what was read.
func race(t *testing.T, root string, n int, paths []string, read func(string) (string, error)) (map[string]int, int) {
	t.Helper()
	var stop atomic.Bool
	var wg, readers sync.WaitGroup
	for _, pair := range [][2]string{{"d", "dirout"}, {"g", "leaf"}} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !stop.Load() {
				_ = unix.Renameat2(unix.AT_FDCWD, root+"/"+pair[0], unix.AT_FDCWD, root+"/"+pair[1], unix.RENAME_EXCHANGE)
			}
		}()
	}
	var mu sync.Mutex
	got, leaked := map[string]int{}, 0
	for k := range 2 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			mine, bad := map[string]int{}, 0
			for i := range n / 2 {
				text, err := read(paths[(i+k)%len(paths)])
				if err != nil {
					text = "error"
				}
				if mine[text]++; strings.Contains(text, "outside") {
					bad++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for s, c := range mine {
				got[s] += c
			}
			leaked += bad
		}()
	}
	readers.Wait()
	stop.Store(true)
	wg.Wait()
	return got, leaked
}

// Writing is not led out either.
func TestSwappedWrites(t *testing.T) {
	root := lab(t)
	if err := os.Symlink("../outside/f", root+"/leaf"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/g", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	paths := [...]string{"d/f", "g", "d/new", "leaf", "dirout/new"}
	done, _ := race(t, root, 400, paths[:], func(path string) (string, error) {
		x := &tool{q: Request{Op: Write, Path: plan.Bytes(path), Root: plan.Bytes(root)}, content: strings.NewReader("w")}
		return "written", x.run(&Answer{})
	})
	if done["written"] == 0 {
		t.Error("nothing was written at all")
	}
	if b, err := os.ReadFile(root + "/../outside/f"); err != nil || string(b) != "outside\n" {
		t.Errorf("outside was written: %q %v", b, err)
	}
	if list, err := os.ReadDir(root + "/../outside"); err != nil || len(list) != 1 {
		t.Errorf("outside has %v, %v", list, err)
	}
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"op":"read","path":"a/b","root":"/p","limit":10}`, `{"op":"find","pattern":"*.go","path":""}`,
		`{"op":"write","path":"\udc80","parents":true}`, `{"op":"edit","path":"x","inplace":true}`, `[]`, `{"op":"list"}`,
		`{"old":"a","new":"b"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = parseChange(text)
		q, err := Parse(text)
		if err != nil {
			return
		}
		in := q.In("/project")
		argv, err := in.Argv()
		if err != nil || !Is(argv) {
			t.Fatal("a request that cannot be passed on:", err)
		}
		again, err := Parse([]byte(argv[1]))
		if err != nil || again != in {
			t.Fatalf("%+v became %+v: %v", in, again, err)
		}
		if root := string(in.Root); root == "" || root[0] != '/' {
			t.Fatalf("root %q", root)
		}
		if in.MaxAnswer() > 6*MaxBytes+1<<20 {
			t.Fatal("an answer without a bound")
		}
	})
}

// What somebody inside writes in the place of an answer is read or refused, and nothing else.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"op":"read","text":"x"}`))
	f.Add([]byte(`{"entries":[{"name":"a","type":"file"}],"base64":"AA=="}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if a, err := ReadAnswer(text); err == nil {
			_, _ = io.Copy(io.Discard, bytes.NewReader(a.Content()))
		}
	})
}
