//go:build linux

package turn

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

func open(t *testing.T, dir string) *Turn {
	t.Helper()
	x, err := Open(dir, "me")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func (t *Turn) taken(tb testing.TB, want bool) {
	tb.Helper()
	if got, err := t.Take(); err != nil || got != want {
		tb.Fatalf("took its turn: %v, %v", got, err)
	}
}

// One session at a time has the turn. A program that was started with it shares it, and the last one to go leaves it.
func TestTake(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	a.taken(t, true)
	b.taken(t, false)
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	b.taken(t, true)
	a.taken(t, false)
	f, err := b.Share()
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	a.taken(t, false)
	f.Close()
	a.taken(t, true)
	if _, _, err := a.Kept(); err != nil { // what is kept has a lock of its own
		t.Fatal(err)
	}
}

// TestTakeInAnotherProcess is TestKilled's other session.
func TestTakeInAnotherProcess(t *testing.T) {
	dir := os.Getenv("SBX_TEST_TURN")
	if dir == "" {
		return
	}
	x := open(t, dir)
	x.taken(t, true)
	if mine, err := lock(x.f, keeping); err != nil || !mine {
		t.Fatal(mine, err)
	}
	if err := x.set("announced"); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("has it\n")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed; the runtime ends a program in which all wait for nothing
}

// Who is killed while he has the turn, and while he changes what is kept, holds nobody up. What he had announced is
// found missing.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	if _, err := a.Keep([]byte("one")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestTakeInAnotherProcess$")
	cmd.Env = append(os.Environ(), "SBX_TEST_TURN="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "has it\n" {
		t.Errorf("it says %q", line)
	}
	a.taken(t, false)
	if mine, err := lock(a.f, keeping); err != nil || mine { // control
		t.Errorf("both change what is kept: %v", err)
	}
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("it ended by itself: %v", err)
	}
	a.taken(t, true)
	if m, _ := a.Mark(); m == markOf([]byte("one")) {
		t.Error("control: nothing was announced")
	}
	sealed, m, err := a.Kept()
	if now, _ := a.Mark(); err != nil || string(sealed) != "one" || m != now || m != markOf(sealed) {
		t.Errorf("%q, %s, %s, %v", sealed, m, now, err)
	}
}

// What one session keeps the other finds, by its mark. A failure leaves what was kept, and says so.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	if sealed, m, err := b.Kept(); err != nil || len(sealed) > 0 || m != "" {
		t.Fatalf("%q, %q, %v", sealed, m, err)
	}
	marks := map[Mark]bool{"": true}
	for _, text := range []string{"one", "two", "three"} {
		m, err := a.Keep([]byte(text))
		if err != nil || marks[m] {
			t.Fatal(m, err)
		}
		marks[m] = true
		if now, err := b.Mark(); err != nil || now != m {
			t.Errorf("the mark is %q, %v, want %q", now, err, m)
		}
		if sealed, now, err := b.Kept(); err != nil || string(sealed) != text || now != m {
			t.Errorf("%q, %q, %v", sealed, now, err)
		}
	}
	was, _ := a.Mark()
	// A name for a moment cannot be made: what is kept stays, and so does its mark.
	a.sealed = filepath.Join(dir, "none", "me.age")
	if _, err := a.Keep([]byte("four")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if sealed, m, err := b.Kept(); err != nil || string(sealed) != "three" || m != was {
		t.Errorf("%q, %q, %v", sealed, m, err)
	}
}

// A login that was ended does not come back: not from a session that keeps meanwhile, nor from one that does later.
func TestEnd(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "me.age")
	for range 200 {
		list := []*Turn{open(t, dir), open(t, dir)}
		var all sync.WaitGroup
		for _, x := range list {
			all.Go(func() {
				for range 3 {
					if _, err := x.Keep([]byte("token")); err != nil && !errors.Is(err, ErrEnded) {
						t.Error(err)
					}
				}
			})
		}
		if err := End(dir, "me"); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		for _, x := range list {
			if _, err := x.Keep([]byte("token")); !errors.Is(err, ErrEnded) || !x.Ended() {
				t.Fatalf("it was kept: %v", err)
			}
			x.Close()
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Fatalf("it is back: %v", entries)
		}
	}
	old := open(t, dir)
	if err := End(dir, "me"); err != nil {
		t.Fatal(err)
	}
	next := open(t, dir) // the same name, added again
	if _, err := next.Keep([]byte("new")); err != nil || !old.Ended() || next.Ended() {
		t.Errorf("%v, %v, %v", err, old.Ended(), next.Ended())
	}
	if err := os.WriteFile(filepath.Join(dir, "typed.age"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(End(dir, "typed"), End(dir, "nothing")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "typed.age")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a value that was typed is left")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
}
