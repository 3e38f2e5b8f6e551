//go:build linux

package audit

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newLog(t *testing.T, opts Options) (*Writer, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	w, err := Create(dir, "s1", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, filepath.Join(dir, "s1.jsonl")
}

func add(t *testing.T, w *Writer, kinds ...string) {
	t.Helper()
	for i, k := range kinds {
		if _, err := w.Append(Event{Kind: k, Path: "/p", PID: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCreate(t *testing.T) {
	w, path := newLog(t, Options{PlanHash: "ph", Start: Event{UID: 5}})
	st, _ := os.Stat(path)
	dst, _ := os.Stat(filepath.Dir(path))
	if st.Mode().Perm() != 0o600 || dst.Mode().Perm() != 0o700 {
		t.Fatalf("modes %v %v", st.Mode(), dst.Mode())
	}
	if _, err := Create(filepath.Dir(path), "s1", Options{}); !errors.Is(err, unix.EEXIST) {
		t.Fatalf("second Create: %v, want EEXIST", err)
	}
	os.Symlink("/etc/passwd", filepath.Join(filepath.Dir(path), "s2.jsonl"))
	if _, err := Create(filepath.Dir(path), "s2", Options{}); !errors.Is(err, unix.EEXIST) {
		t.Fatalf("Create over a link: %v, want EEXIST", err)
	}
	for _, sid := range []string{"", ".", "..", "a/b", "a\x00", strings.Repeat("a", 65), "é"} {
		if _, err := Create(filepath.Dir(path), sid, Options{}); err == nil ||
			!strings.Contains(err.Error(), "checking session id") {
			t.Errorf("%q: %v", sid, err)
		}
	}
	os.Chmod(filepath.Dir(path), 0o777)
	if _, err := Create(filepath.Dir(path), "s3", Options{}); err == nil ||
		!strings.Contains(err.Error(), "writable by others") {
		t.Fatalf("open folder: %v", err)
	}
	add(t, w, KindAsk)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(Event{Kind: KindAsk}); !errors.Is(err, ErrClosed) {
		t.Fatalf("append after close: %v", err)
	}
	rep, err := VerifyFile(path)
	if err != nil || !rep.Sealed || rep.Records != 3 || rep.PlanHash != "ph" || rep.Session != "s1" {
		t.Fatalf("%+v %v", rep, err)
	}
}

func TestAppendRefusesWithoutBreaking(t *testing.T) {
	w, _ := newLog(t, Options{})
	for _, e := range []Event{{Kind: ""}, {Kind: "A"}, {Kind: "x", Detail: []KV{{"a", ""}, {"a", ""}}},
		{Kind: "x", Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		if _, err := w.Append(e); err == nil {
			t.Errorf("accepted %+v", e)
		}
	}
	add(t, w, KindAllow)
}

// TestDamage is LC-08: whatever is done to the text is found, with its line.
func TestDamage(t *testing.T) {
	w, path := newLog(t, Options{})
	add(t, w, KindAsk, KindDeny, KindAsk, KindAllow)
	w.Close()
	whole, _ := os.ReadFile(path)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	join := func(idx ...int) []byte {
		var b []byte
		for _, i := range idx {
			b = append(b, lines[i]...)
		}
		return b
	}
	flip := func(i int, old, new string) []byte {
		l := append([][]byte{}, lines...)
		l[i] = bytes.Replace(l[i], []byte(old), []byte(new), 1)
		return bytes.Join(l, nil)
	}
	rehash := func(i int) []byte {
		l := append([][]byte{}, lines...)
		e, _ := DecodeLine(bytes.TrimSuffix(l[i], []byte("\n")))
		e.Kind = KindGrant
		l[i] = e.seal(nil)
		return bytes.Join(l, nil)
	}
	for name, c := range map[string]struct {
		data []byte
		line int
		what string
	}{
		"edit":         {flip(2, `"deny"`, `"grant"`), 3, "was edited"},
		"edit rehash":  {rehash(2), 4, "replaced"},
		"bit flip":     {flip(1, `/p`, `/q`), 2, "was edited"},
		"cut middle":   {join(0, 1, 3, 4, 5), 3, "1 records are missing"},
		"cut head":     {join(1, 2, 3, 4, 5), 1, "1 records are missing"},
		"swap":         {join(0, 2, 1, 3, 4, 5), 2, "missing"},
		"repeat":       {join(0, 1, 1, 2, 3, 4, 5), 3, "out of order or repeated"},
		"after seal":   {append(join(0, 1, 2, 3, 4, 5), lines[5]...), 7, "follows the seal"},
		"torn":         {whole[:len(whole)-7], 6, "torn"},
		"no newline":   {whole[:len(whole)-1], 6, "torn"},
		"blank line":   {append(join(0), append([]byte("\n"), join(1, 2, 3, 4, 5)...)...), 2, "decoding record"},
		"carriage":     {flip(1, "\n", "\r\n"), 2, "trailing data"},
		"empty":        {nil, 1, "empty"},
		"long line":    {append(bytes.Repeat([]byte("a"), MaxLine+5), '\n'), 1, "longer"},
		"zeros at end": {append(append([]byte{}, whole...), make([]byte, 512)...), 7, "torn"},
	} {
		rep, err := verify(c.data)
		if !errors.Is(err, ErrTampered) || len(rep.Problems) == 0 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := rep.Problems[0]; p.Line != c.line || !strings.Contains(p.What, c.what) {
			t.Errorf("%s: %v, want line %d with %q", name, p, c.line, c.what)
		}
	}
	rep, err := verify(join(0, 1, 2))
	if err != nil || rep.Sealed {
		t.Errorf("cut tail: %v sealed=%v, want no problem and no seal", err, rep.Sealed)
	}
}

// verify checks a whole log without a file.
func verify(data []byte) (Report, error) {
	c := newChecker()
	if err := c.read("", bytes.NewReader(data)); err != nil {
		return c.rep, err
	}
	return c.finish()
}

// TestVanished is LC-09: a log that is no longer ours ends all granting.
func TestVanished(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(path string) error
		what string
	}{
		"removed":  {os.Remove, "no name"},
		"renamed":  {func(p string) error { return os.Rename(p, p+".old") }, "leads elsewhere"},
		"replaced": {func(p string) error { os.Rename(p, p+".old"); return os.WriteFile(p, nil, 0o600) }, "leads elsewhere"},
		"cut":      {func(p string) error { return os.Truncate(p, 10) }, "shrank"},
		"appended": {func(p string) error {
			f, _ := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			defer f.Close()
			_, err := f.WriteString("x\n")
			return err
		}, "grew"},
	} {
		w, path := newLog(t, Options{})
		add(t, w, KindAsk)
		if err := c.do(path); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < 2; i++ {
			if _, err := w.Append(Event{Kind: KindGrant}); !errors.Is(err, ErrVanished) ||
				!strings.Contains(err.Error(), c.what) {
				t.Errorf("%s: append %d: %v, want %q", name, i, err, c.what)
			}
		}
		if w.Err() == nil || !errors.Is(w.Close(), ErrVanished) {
			t.Errorf("%s: Err or Close forgot the failure", name)
		}
	}
}

func TestConcurrent(t *testing.T) {
	n := 0
	w, path := newLog(t, Options{Syslog: func([]byte) { n++ }})
	var wg sync.WaitGroup
	for i := 0; i < 8; i++ {
		wg.Go(func() {
			for j := 0; j < 25; j++ {
				w.Append(Event{Kind: KindAsk, Path: "/p"})
			}
		})
	}
	wg.Wait()
	w.Close()
	if rep, err := VerifyFile(path); err != nil || rep.Records != 202 || n != 202 {
		t.Fatalf("%+v %v, %d copies", rep, err, n)
	}
}

func TestRotate(t *testing.T) {
	w, path := newLog(t, Options{MaxBytes: 2000})
	for i := 0; i < 30; i++ {
		add(t, w, KindAsk)
	}
	w.Close()
	rep, err := VerifyFile(path)
	if err != nil || rep.Parts < 3 || !rep.Sealed {
		t.Fatalf("%+v %v", rep, err)
	}
	n := 0
	for _, err := range Query(path, Filter{Kinds: []string{KindAsk}, PathPrefix: "/p"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 30 {
		t.Fatalf("query found %d of 30", n)
	}
	os.Rename(path+".2", path+".x")
	if _, err := VerifyFile(path); !errors.Is(err, ErrTampered) {
		t.Fatalf("missing part: %v", err)
	}
	os.Rename(path+".x", path+".2")
	b, _ := os.ReadFile(path + ".1")
	os.WriteFile(path+".1", b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1], 0o600)
	if _, err := VerifyFile(path); !errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), "rotate record") {
		t.Fatalf("cut part: %v", err)
	}
}

func TestFollow(t *testing.T) {
	w, path := newLog(t, Options{MaxBytes: 1500})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var got []uint64
	done := make(chan error, 1)
	go func() {
		done <- Follow(ctx, path, func(e Event) bool { got = append(got, e.Seq); return true })
	}()
	time.Sleep(20 * time.Millisecond)
	for i := 0; i < 6; i++ {
		add(t, w, KindAsk)
		time.Sleep(5 * time.Millisecond)
	}
	w.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, s := range got {
		if s != uint64(i+1) {
			t.Fatalf("followed %v", got)
		}
	}
	if uint64(len(got)) != w.seq {
		t.Fatalf("followed %d of %d", len(got), w.seq)
	}
}

func TestOpenLogNeverHangs(t *testing.T) {
	p := filepath.Join(t.TempDir(), "x")
	unix.Mkfifo(p, 0o600)
	if _, err := VerifyFile(p); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Fatal(err)
	}
}
