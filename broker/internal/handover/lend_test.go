//go:build linux

package handover

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// lentPipe is a caller's pipe and what a program reads of it.
func lentPipe(t *testing.T) (caller, writer, program *os.File, l *Loan) {
	t.Helper()
	caller, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	program, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if l = Feed(caller, to); l == nil {
		t.Fatal("the pipe was not lent")
	}
	t.Cleanup(func() { caller.Close(); writer.Close(); program.Close() })
	return caller, writer, program, l
}

func readAll(t *testing.T, f io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestLoanTakesWhatWasRead: who reads the pipe next finds what the program has left, wherever it stopped.
func TestLoanTakesWhatWasRead(t *testing.T) {
	for n := range len("one\ntwo\nthree\n") + 1 {
		caller, writer, program, l := lentPipe(t)
		for _, s := range []string{"one\n", "two\n", "three\n"} {
			if _, err := writer.WriteString(s); err != nil {
				t.Fatal(err)
			}
		}
		read := make([]byte, n)
		if _, err := io.ReadFull(program, read); err != nil {
			t.Fatal(err)
		}
		program.Close()
		l.Settle()
		writer.Close()
		if got := string(read) + readAll(t, caller); got != "one\ntwo\nthree\n" {
			t.Errorf("after %d bytes: %q", n, got)
		}
	}
}

func TestLoanIsExact(t *testing.T) {
	_, writer, program, l := lentPipe(t)
	text := bytes.Repeat([]byte("0123456789abcdef\n"), 100_000)
	go func() {
		_, _ = writer.Write(text)
		writer.Close()
	}()
	if got := readAll(t, program); got != string(text) {
		t.Errorf("%d bytes came of %d, or others", len(got), len(text))
	}
	l.Settle()
}

// TestLoanIsNoWayBack: what the program writes into its pipe comes to nobody outside. The caller's own pipe, given
// directly, is the control.
func TestLoanIsNoWayBack(t *testing.T) {
	inject := func(f *os.File) {
		w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.WriteString("injected"); err != nil {
			t.Fatal(err)
		}
	}
	caller, writer, program, l := lentPipe(t)
	inject(program)
	l.Settle()
	if n, err := unix.IoctlGetInt(int(caller.Fd()), unix.TIOCINQ); err != nil || n != 0 {
		t.Errorf("%d bytes are in the caller's pipe: %v", n, err)
	}
	inject(caller)
	writer.Close()
	if got := readAll(t, caller); got != "injected" {
		t.Errorf("the control shows %q", got)
	}
}

func TestLoanEndsWithItsReader(t *testing.T) {
	_, _, program, l := lentPipe(t)
	program.Close()
	<-l.done
	l.Settle()
}
